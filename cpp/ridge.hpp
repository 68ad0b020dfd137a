// Regularized least squares for each row of a table of ratings.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu.hpp"

namespace tacit {

// For each row in [begin, end), with features f_e = features[columns[e]] and targets y_e over its
// entries e, solves (Σ f_e f_eᵀ + n · diag(weighted) + diag(fixed)) out[row] = Σ f_e y_e, n being
// the number of entries. A row without entries, or without a unique solution, becomes zero. Rows do
// not depend on each other, and each is summed in its own order: the result does not depend on
// threads.
struct Ridge {
  const std::int64_t* starts;
  const std::int32_t* columns;
  const float* targets;
  const float* features;  // feature_rows × width
  std::size_t feature_rows;
  std::size_t width;
  const double* weighted;  // width
  const double* fixed;     // width
};

void ridge_rows(const Ridge& problem, std::size_t begin, std::size_t end, float* out,
                InstructionSet set);

}  // namespace tacit
