// Terms of one rating in the sums of prediction errors. All kernels follow this definition.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "error_sums.hpp"

namespace taciturn {

// Prediction of a rating, in grid steps. The sum of 16-bit products is exact.
inline float predict(const ErrorPass& pass, const Axis& rows, std::size_t row, const Axis& columns,
                     std::size_t column, std::size_t width) {
  const std::int16_t* own = rows.features + row * pass.stride;
  const std::int16_t* other = columns.features + column * pass.stride;
  std::int32_t product = 0;
  for (std::size_t k = pass.first; k < width; ++k) product += own[k] * other[k];
  const float *first = rows.lines + 2 * row, *second = columns.lines + 2 * column;
  return (first[0] + second[0]) + (first[1] * second[1]) * static_cast<float>(product);
}

// Clipped prediction error v̂ − v of a rating. A NaN prediction counts as the floor.
inline std::int32_t clipped_error(const ErrorPass& pass, float prediction, std::int32_t value) {
  // Adding and subtracting this rounds a float below 2^22 to an integer, ties to even.
  constexpr float rounder = 0x1.8p23f;
  const auto floor = static_cast<float>(pass.floor), ceiling = static_cast<float>(pass.ceiling);
  const float raised = prediction > floor ? prediction : floor;
  const float inside = raised < ceiling ? raised : ceiling;
  const float rounded = (inside + rounder) - rounder;
  const auto whole = static_cast<std::int32_t>(rounded);
  return std::clamp(whole - std::clamp(value, pass.lowest, pass.highest), -pass.threshold, pass.threshold);
}

// Prediction error of a rating, times each of its weights.
struct TermErrors {
  std::int32_t of_row, of_column;
};

inline TermErrors term_errors(const ErrorPass& pass, std::size_t row, std::size_t column,
                              std::int32_t error) {
  if (!pass.weights) return {error, error};
  const PairWeights& weights = *pass.weights;
  const std::size_t place = weights.rows[row] * PairWeights::classes + weights.columns[column];
  return {weighted_error(error, weights.of_rows[place]),
          weighted_error(error, weights.of_columns[place])};
}

// Adds error × feature to the sums of a row and of a column.
inline void add_terms(const TermErrors& errors, const std::int16_t* own, const std::int16_t* other,
                      std::size_t width, std::int64_t* row_sum, std::int64_t* column_sum) {
  for (std::size_t k = 0; k < width; ++k) {
    row_sum[k] += std::int64_t{errors.of_row} * other[k];
    column_sum[k] += std::int64_t{errors.of_column} * own[k];
  }
}

}  // namespace taciturn
