// Posterior of each row's coefficients, given noisy weighted sums over its ratings.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu.hpp"

namespace taciturn {

// An entry e of a row has query features f_e (D numbers), an unknown design a_e (p numbers) and a known
// design k_e. With o_e = ⟨known[row], k_e⟩, the noisy sums that were released for the row are
//   y = Σ f_e (⟨a_e, z⟩ + o_e + error of variance 1) + noise of variances `noise`.
// The coefficients z have the prior precision `precision` and the prior mean precision⁻¹ · pull. For errors
// of another variance, the caller multiplies f_e by their standard deviation and divides a_e and k_e by it.
struct Posterior {
  const std::int64_t* starts;
  const std::int32_t* columns;
  const float* table;  // table_rows × width: features, then unknown, then known design
  std::size_t table_rows;
  std::size_t width;      // a multiple of 16
  std::size_t features;   // D
  std::size_t design;     // first column of the design: D rounded up to a multiple of 16
  std::size_t unknown;    // p
  std::size_t known_count;
  const double* sums;       // rows × D: y
  const double* noise;      // D
  const double* known;      // rows × known_count
  const double* precision;  // p × p
  const double* pull;       // rows × p: precision · mean
};

struct PosteriorOutput {
  double* means;      // rows × p
  double* variances;  // rows × p: the diagonal of the covariance
  double* total;      // p × p, added to: the sum of all covariances
};

// For each row in [begin, end): with G = Σ f fᵀ + diag(noise) and H = Σ f aᵀ, the covariance is
// P = (Hᵀ G⁻¹ H + precision)⁻¹ and the mean P (Hᵀ G⁻¹ (y − Σ f o) + pull). A row with fewer entries
// than features is solved in the dimension of its entries, the same up to rounding. Rows do not depend
// on each other. For precision see gram.hpp.
void posterior_rows(const Posterior& problem, std::size_t begin, std::size_t end,
                    const PosteriorOutput& out, InstructionSet set);

// out[e] = ⟨rows[row], others[columns[e]]⟩ for the entries e of each row in [begin, end).
void products(const std::int64_t* starts, const std::int32_t* columns, const float* rows,
              const float* others, std::size_t other_rows, std::size_t width, std::size_t begin,
              std::size_t end, float* out);

}  // namespace taciturn
