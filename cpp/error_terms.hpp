// Terms of one rating in the sums of prediction errors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "error_sums.hpp"

namespace taciturn {

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
