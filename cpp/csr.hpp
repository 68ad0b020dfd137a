// Compressed sparse rows: built from triples by counting, and transposed.
//
// Both are stable counting sorts, so transposing sorts every row by column. Memory is linear in the
// number of entries. The entries may be divided among threads: each counts the keys of its part, and
// from all counts follows the index at which it writes its first entry of each row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

namespace taciturn {

inline void require_index(std::int32_t index, std::size_t size) {
  if (static_cast<std::size_t>(index) >= size) throw std::out_of_range("an index is out of range");
}

// Output rows: next[r] is the index of the next entry of row r.
template <typename Value>
struct RowWriter {
  std::span<std::int64_t> next;
  std::span<std::int32_t> columns;
  std::span<Value> values;

  void append(std::int32_t row, std::int32_t column, Value value) {
    require_index(row, next.size());
    const auto place = static_cast<std::size_t>(next[row]++);
    if (place >= columns.size()) throw std::out_of_range("a row has more entries than counted");
    columns[place] = column;
    values[place] = value;
  }
};

// Adds the number of occurrences of each key to counts. Throws if a key is out of range.
inline void count_keys(std::span<const std::int32_t> keys, std::span<std::int64_t> counts) {
  for (const std::int32_t key : keys) {
    require_index(key, counts.size());
    ++counts[key];
  }
}

// Index into a table with `rows` rows. Throws if it is out of range.
inline __attribute__((always_inline)) std::uint32_t checked_column(std::int32_t column,
                                                                   std::size_t rows) {
  const auto index = static_cast<std::uint32_t>(column);
  if (index >= rows) throw std::out_of_range("a column has no features");
  return index;
}

// Appends (columns[e], values[e]) to row rows[e], for each e.
template <typename Value>
void group(std::span<const std::int32_t> rows, std::span<const std::int32_t> columns,
           std::span<const Value> values, RowWriter<Value> out) {
  for (std::size_t entry = 0; entry < rows.size(); ++entry) {
    out.append(rows[entry], columns[entry], values[entry]);
  }
}

// Appends the rows [begin, end) of a matrix to its transpose. The starts must be ascending and within
// the entries.
template <typename Value>
void transpose(std::span<const std::int64_t> starts, std::span<const std::int32_t> columns,
               std::span<const Value> values, std::size_t begin, std::size_t end,
               RowWriter<Value> out) {
  for (std::size_t row = begin; row < end; ++row) {
    for (std::int64_t entry = starts[row]; entry < starts[row + 1]; ++entry) {
      out.append(columns[entry], static_cast<std::int32_t>(row), values[entry]);
    }
  }
}

}  // namespace taciturn
