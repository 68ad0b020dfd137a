// Both gradients of the squared error in one pass over the ratings, in exact integers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu.hpp"

namespace taciturn {

// One side of the factorization, a row for each user or item. The prediction of a rating, in steps
// of the grid of values, is (base + base) + (scale · scale) · ⟨features, features⟩ in floats.
struct Side {
  const std::int16_t* features;  // rows × stride; no row is longer than Residuals::norm
  const float* lines;            // rows × 2: base, scale
  std::size_t rows;
};

struct Residuals {
  const std::int64_t* starts;   // compressed rows of one side,
  const std::int32_t* columns;  // referring to rows of the other, rising within a row
  const std::int32_t* values;
  std::int32_t lowest, highest;  // a value outside counts as the nearer end
  std::int32_t floor, ceiling;   // a prediction is rounded and cut to lie between
  std::size_t stride;            // a multiple of 32
  std::size_t first;             // columns before it, at most 32, do not enter the prediction
  std::int32_t limit;            // a residual beyond ± this counts as that

  static constexpr int norm = 1 << 14;
  static constexpr std::size_t stride_max = 8192;

  // The largest residual: at most residual_max.
  std::int64_t largest() const noexcept;
  static constexpr std::int64_t residual_max = (1 << 15) - 1;

  // The largest floor and ceiling: floats hold whole numbers up to there, and are rounded well.
  static constexpr std::int32_t prediction_max = 1 << 21;
};

struct ResidualOutput {
  std::size_t width;           // at most the stride
  std::int64_t* row_sums;      // rows × width, stored
  std::int64_t* column_sums;   // columns × width, added to
  std::int64_t* squares;       // rows, stored
};

// For each rating with residual r = prediction − value, cut to ± limit, of the rows in [begin, end):
//   row_sums[row]       = Σ r · columns.features[column]
//   column_sums[column] += r · rows.features[row]
//   squares[row]        = Σ r²
// All are exact, so neither the division of the rows among threads nor the instruction set changes
// anything. A column that is not there throws.
void residual_sums(const Residuals& pass, const Side& rows, const Side& columns, std::size_t begin,
                   std::size_t end, const ResidualOutput& out, InstructionSet set);

}  // namespace taciturn
