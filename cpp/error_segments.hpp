// Order in which the vector kernels of error_sums() visit the ratings, and the terms that their 32-bit
// sums leave out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "error_terms.hpp"

namespace taciturn {

// Largest error that the 32-bit sums include. Larger ones are rare; add_large_error() adds them.
inline std::int32_t usual_error(const ErrorPass& pass) {
  const std::int64_t range = std::int64_t{pass.highest} - pass.lowest;
  return static_cast<std::int32_t>(std::min(pass.largest(), std::max(std::int64_t{255}, range)));
}

// Adds the terms of a rating whose clipped error is too large for 32-bit sums.
__attribute__((noinline)) inline void add_large_error(const ErrorPass& pass, const Axis& rows,
                                                      std::size_t row, const Axis& columns,
                                                      std::int32_t at, std::int32_t error,
                                                      const ErrorOutput& out) {
  const auto column = static_cast<std::size_t>(at);
  add_terms(term_errors(pass, row, column, error), rows.features + row * pass.stride,
            columns.features + column * pass.stride, out.width, out.row_sums + row * out.width,
            out.column_sums + column * out.width);
  out.squares[row] += std::int64_t{error} * error;
}

// Throws if a column of the rows [begin, end) is out of range.
inline void check_columns(const ErrorPass& pass, const Axis& columns, std::size_t begin,
                          std::size_t end) {
  // The top bit of column or of limit − column is set for a column out of range, and the compiler
  // vectorizes this on every processor.
  const auto limit = static_cast<std::uint32_t>(columns.rows) - 1;
  std::uint32_t bits = 0;
  for (std::int64_t entry = pass.starts[begin]; entry < pass.starts[end]; ++entry) {
    const auto column = static_cast<std::uint32_t>(pass.columns[entry]);
    bits |= column | (limit - column);
  }
  if (bits >> 31 != 0) throw std::out_of_range("a column has no features");
}

// End of the longest range of rows, starting at `row`, whose column sums fit into 32 bits. A row has at
// most one rating in each column.
inline std::size_t safe_rows(const ErrorPass& pass, const Axis& rows, std::size_t row,
                             std::size_t end) {
  const std::int32_t usual = usual_error(pass);
  for (std::int64_t most = 0; row < end; ++row) {
    if (pass.starts[row] == pass.starts[row + 1]) continue;
    const std::int16_t* features = rows.features + row * pass.stride;
    std::int16_t lowest = 0, highest = 0;
    for (std::size_t k = 0; k < pass.stride; ++k) {
      lowest = std::min(lowest, features[k]);
      highest = std::max(highest, features[k]);
    }
    most += std::int64_t{std::max(-lowest, +highest)} * usual;
    if (most > std::numeric_limits<std::int32_t>::max()) break;
  }
  return row;
}

// Calls segment(row, first, stop) for ratings of the rows [begin, end), so few at a time that the sums
// of a row fit into 32 bits, and spill() whenever the sums of columns might not fit any longer.
template <typename Segment, typename Spill>
void for_segments(const ErrorPass& pass, const Axis& rows, const Axis& columns, std::size_t begin,
                  std::size_t end, const ErrorOutput& out, Segment segment, Spill spill) {
  check_columns(pass, columns, begin, end);
  std::fill(out.row_sums + begin * out.width, out.row_sums + end * out.width, 0);
  std::fill(out.squares + begin, out.squares + end, 0);
  const auto safe = std::max<std::int64_t>(
      1, (std::int64_t{1} << 31) / (std::int64_t{usual_error(pass)} * ErrorPass::norm + 1) - 1);
  // Number of columns whose features and sums fit into the second-level cache.
  const std::size_t tile = std::max<std::size_t>(64, (768 << 10) / (pass.stride * 6));
  std::vector<std::int64_t> places(pass.starts + begin, pass.starts + end);
  for (std::size_t top = begin, bottom; top < end; top = bottom) {
    bottom = safe_rows(pass, rows, top, end);
    for (std::size_t edge = tile; edge < columns.rows + tile; edge += tile) {
      std::int64_t* next = places.data() + (top - begin);
      for (std::size_t row = top; row < bottom; ++row) {
        std::int64_t& place = *next++;
        const std::int64_t last = pass.starts[row + 1];
        const std::int64_t stop =
            edge >= columns.rows
                ? last
                : std::lower_bound(pass.columns + place, pass.columns + last,
                                   static_cast<std::int32_t>(edge)) -
                      pass.columns;
        for (; place < stop; place = std::min(stop, place + safe)) {
          segment(row, place, std::min(stop, place + safe));
        }
      }
    }
    spill();
  }
}

}  // namespace taciturn
