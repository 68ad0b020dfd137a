// Compressed sparse rows: built from triples by counting, and transposed.
//
// Both keep the order of entries with equal keys, so that transposing sorts every row by column.
// Memory is linear in the entries; nothing is compared. The entries may be divided among threads:
// each counts the keys of its part, and is then told where its first entry of each row goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

namespace taciturn {

inline void require_index(std::int32_t index, std::size_t size) {
  if (static_cast<std::size_t>(index) >= size) throw std::out_of_range("an index is out of range");
}

// Where entries are filed: next[r] is the place of the next entry of row r.
template <typename Value>
struct Filing {
  std::span<std::int64_t> next;
  std::span<std::int32_t> columns;
  std::span<Value> values;

  void file(std::int32_t row, std::int32_t column, Value value) {
    require_index(row, next.size());
    const auto place = static_cast<std::size_t>(next[row]++);
    if (place >= columns.size()) throw std::out_of_range("a row has more entries than counted");
    columns[place] = column;
    values[place] = value;
  }
};

// Adds the number of each key to counts; throws if one is out of range.
inline void count_keys(std::span<const std::int32_t> keys, std::span<std::int64_t> counts) {
  for (const std::int32_t key : keys) {
    require_index(key, counts.size());
    ++counts[key];
  }
}

// Index into a table with this many rows; throws if it has no such row.
inline __attribute__((always_inline)) std::uint32_t checked_column(std::int32_t column,
                                                                   std::size_t rows) {
  const auto index = static_cast<std::uint32_t>(column);
  if (index >= rows) throw std::out_of_range("a column has no features");
  return index;
}

// Files the triples (rows[e], columns[e], values[e]).
template <typename Value>
void group(std::span<const std::int32_t> rows, std::span<const std::int32_t> columns,
           std::span<const Value> values, Filing<Value> out) {
  for (std::size_t entry = 0; entry < rows.size(); ++entry) {
    out.file(rows[entry], columns[entry], values[entry]);
  }
}

// Files the rows [begin, end) of a table in its transpose: what was in row r and column c goes to
// row c and column r. The starts rise within the entries.
template <typename Value>
void transpose(std::span<const std::int64_t> starts, std::span<const std::int32_t> columns,
               std::span<const Value> values, std::size_t begin, std::size_t end,
               Filing<Value> out) {
  for (std::size_t row = begin; row < end; ++row) {
    for (std::int64_t entry = starts[row]; entry < starts[row + 1]; ++entry) {
      out.file(columns[entry], static_cast<std::int32_t>(row), values[entry]);
    }
  }
}

}  // namespace taciturn
