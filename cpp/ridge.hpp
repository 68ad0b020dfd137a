// Regularized least squares for each row of a table of ratings.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu.hpp"

namespace taciturn {

// Each entry e of a row has a partner columns[e], whose own row (bias, factors) is given, and a target
// t_e. With features f_e = (1, factors) and y_e = t_e − bias, solves
//   (Σ f_e f_eᵀ + n · diag(weighted) + diag(fixed)) out[row] = Σ f_e y_e
// for each row in [begin, end), n being the number of its entries. Sums are in floats for a few
// entries, in doubles beyond: what is added to the diagonal should be at least a millionth of the
// sums there. A row without entries, or whose equations are not positive definite, becomes zero.
// Rows do not depend on each other, and each is summed in its own order: the result does not depend
// on threads.
struct Ridge {
  const std::int64_t* starts;
  const std::int32_t* columns;
  const float* targets;
  const float* partners;  // partner_rows × width
  std::size_t partner_rows;
  std::size_t width;
  const double* weighted;  // width
  const double* fixed;     // width
};

void ridge_rows(const Ridge& problem, std::size_t begin, std::size_t end, float* out,
                InstructionSet set);

}  // namespace taciturn
