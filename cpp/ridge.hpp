// Regularized least squares for each row of a table of ratings.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu.hpp"

namespace taciturn {

// Each entry e of a row has a counterpart columns[e], whose bias and factors are given, and a target
// t_e. With features f_e = (1, factors) and y_e = t_e − bias, solves
//   (Σ f_e f_eᵀ + n · diag(by_count) + diag(fixed)) out[row] = Σ f_e y_e
// for each row in [begin, end), where n is its number of entries. Entries are summed in floats (see gram.hpp),
// so the regularization should be at least a millionth of the sums on the diagonal. A row without entries, or whose equations are not positive definite, becomes zero.
// Rows do not depend on each other, so the result does not depend on the number of threads.
struct Ridge {
  const std::int64_t* starts;
  const std::int32_t* columns;
  const float* targets;
  const float* counterparts;  // counterpart_rows × width
  std::size_t counterpart_rows;
  std::size_t width;
  const double* by_count;  // width
  const double* fixed;     // width
};

// Columns 1 to `count` of the inverse of a row's normal equations, count × width for each row, go to
// `out`; zero for rows whose solution is zero as above. No columns if `count` is 0.
struct InverseColumns {
  std::size_t count;
  float* out;
};

void ridge_rows(const Ridge& problem, std::size_t begin, std::size_t end, float* out,
                const InverseColumns& inverse, InstructionSet set);

}  // namespace taciturn
