#include "error_sums.hpp"

#include <algorithm>

#include "csr.hpp"
#include "error_sums_avx512.hpp"
#include "error_terms.hpp"

namespace taciturn {

namespace {

void error_sums_portable(const ErrorPass& pass, const Axis& rows, const Axis& columns,
                            std::size_t begin, std::size_t end, const ErrorOutput& out) {
  const std::size_t width = out.width;
  for (std::size_t row = begin; row < end; ++row) {
    const std::int16_t* own = rows.features + row * pass.stride;
    std::int64_t* row_sum = out.row_sums + row * width;
    std::fill_n(row_sum, width, 0);
    std::int64_t squares = 0;
    for (std::int64_t entry = pass.starts[row]; entry < pass.starts[row + 1]; ++entry) {
      const std::uint32_t column = checked_column(pass.columns[entry], columns.rows);
      const std::int16_t* other = columns.features + column * pass.stride;
      const float prediction = predict(pass, rows, row, columns, column, width);
      const std::int32_t error = clipped_error(pass, prediction, pass.values[entry]);
      squares += std::int64_t{error} * error;
      add_terms(term_errors(pass, row, column, error), own, other, width, row_sum,
                out.column_sums + column * width);
    }
    out.squares[row] = squares;
  }
}

}  // namespace

std::int64_t ErrorPass::largest() const noexcept {
  const auto unclipped = std::max(std::int64_t{ceiling} - lowest, std::int64_t{highest} - floor);
  return std::min(std::int64_t{threshold}, unclipped);
}

void error_sums(const ErrorPass& pass, const Axis& rows, const Axis& columns, std::size_t begin,
                   std::size_t end, const ErrorOutput& out, InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::avx512) {
    return error_sums_avx512(pass, rows, columns, begin, end, out);
  }
#endif
  static_cast<void>(set);
  error_sums_portable(pass, rows, columns, begin, end, out);
}

}  // namespace taciturn
