// Compressed sparse rows: built from triples by counting, and transposed.
//
// Both keep the order of entries with equal keys, so that transposing sorts every row by column.
// Memory is linear in the entries; nothing is compared. Several threads may each write some of the
// rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <vector>

namespace tacit {

// A table in compressed sparse rows: row r has the entries starts[r] to starts[r + 1].
template <typename Value>
struct Csr {
  std::span<const std::int64_t> starts;
  std::span<std::int32_t> columns;
  std::span<Value> values;
};

// Some of the rows of a table, for one thread to write.
struct Rows {
  std::int32_t begin;
  std::int32_t end;

  bool contain(std::int32_t row) const { return begin <= row && row < end; }
};

// Writes where each row starts if its entries have the given keys; throws if one is out of range.
inline void row_starts(std::span<const std::int32_t> keys, std::span<std::int64_t> starts) {
  std::fill(starts.begin(), starts.end(), 0);
  const auto rows = static_cast<std::uint32_t>(starts.size() - 1);
  for (const std::int32_t key : keys) {
    if (static_cast<std::uint32_t>(key) >= rows) throw std::out_of_range("an index is out of range");
    ++starts[static_cast<std::size_t>(key) + 1];
  }
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
}

// Files the triples (keys[e], columns[e], values[e]) into the given rows, in their order. The table's
// starts are those of all keys.
template <typename Value>
void group(std::span<const std::int32_t> keys, std::span<const std::int32_t> columns,
           std::span<const Value> values, Csr<Value> out, Rows rows) {
  std::vector<std::int64_t> next(out.starts.begin() + rows.begin, out.starts.begin() + rows.end);
  for (std::size_t entry = 0; entry < keys.size(); ++entry) {
    if (!rows.contain(keys[entry])) continue;
    const auto place = static_cast<std::size_t>(next[keys[entry] - rows.begin]++);
    out.columns[place] = columns[entry];
    out.values[place] = values[entry];
  }
}

// Writes the given rows of the transpose of a table: what was in row r and column c is in row c and
// column r. The starts of the input rise from 0 to the number of entries.
template <typename Value>
void transpose(std::span<const std::int64_t> starts, std::span<const std::int32_t> columns,
               std::span<const Value> values, Csr<Value> out, Rows rows) {
  std::vector<std::int64_t> next(out.starts.begin() + rows.begin, out.starts.begin() + rows.end);
  for (std::size_t row = 0; row + 1 < starts.size(); ++row) {
    for (std::int64_t entry = starts[row]; entry < starts[row + 1]; ++entry) {
      if (!rows.contain(columns[entry])) continue;
      const auto place = static_cast<std::size_t>(next[columns[entry] - rows.begin]++);
      out.columns[place] = static_cast<std::int32_t>(row);
      out.values[place] = values[entry];
    }
  }
}

}  // namespace tacit
