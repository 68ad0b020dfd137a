// Sums of prediction error × feature by row and by column, in one pass over the ratings and in exact
// integers: both gradients of the squared error. The prediction error is v̂ − v.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu.hpp"
#include "pair_weights.hpp"

namespace taciturn {

// Users or items, one row each. The prediction of a rating, in grid steps, is
// (base + base') + (scale · scale') · ⟨features, features'⟩ in floats.
struct Axis {
  const std::int16_t* features;  // rows × stride; the norm of a row is at most ErrorPass::norm
  const float* lines;            // rows × 2: base, scale
  std::size_t rows;
};

struct ErrorPass {
  const std::int64_t* starts;   // compressed sparse rows
  const std::int32_t* columns;  // rows of the column axis, ascending within each row
  const std::int32_t* values;
  std::int32_t lowest, highest;  // values are clipped to this range
  std::int32_t floor, ceiling;   // predictions are clipped to this range and rounded
  std::size_t stride;            // a multiple of 32
  std::size_t first;             // predictions skip the columns before this one; at most 32
  std::int32_t threshold;        // prediction errors are clipped to ± threshold
  const PairWeights* weights = nullptr;  // null: all weights are 1

  static constexpr int norm = 1 << 14;
  static constexpr std::size_t stride_max = 8192;

  // Largest absolute prediction error; must not exceed error_max.
  std::int64_t largest() const noexcept;
  static constexpr std::int64_t error_max = (1 << 15) - 1;

  // Largest absolute floor and ceiling: floats represent these integers exactly and round correctly.
  static constexpr std::int32_t prediction_max = 1 << 21;
};

struct ErrorOutput {
  std::size_t width;           // at most the stride
  std::int64_t* row_sums;      // rows × width, stored
  std::int64_t* column_sums;   // columns × width, added to
  std::int64_t* squares;       // rows, stored
};

// Over the ratings of the rows in [begin, end), with the clipped prediction error
// e = clip(prediction − value, ± threshold):
//   row_sums[row]       = Σ weighted_error(e, weight for rows) · columns.features[column]
//   column_sums[column] += weighted_error(e, weight for columns) · rows.features[row]
//   squares[row]        = Σ e²
// where both weights are those of the classes of row and column; without weights, e itself is added.
// All sums are exact, so the result depends neither on the instruction set nor on how rows are
// divided among threads. Throws if a column index is out of range.
void error_sums(const ErrorPass& pass, const Axis& rows, const Axis& columns, std::size_t begin,
                   std::size_t end, const ErrorOutput& out, InstructionSet set);

}  // namespace taciturn
