// Posterior of each row's coefficients, given noisy weighted sums over its ratings.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu.hpp"

namespace taciturn {

// A row has entries e with measured features f_e (D numbers), unknown design a_e (p numbers) and
// known design k_e. What was released about the row is, with o_e = ⟨known[row], k_e⟩,
//   y = Σ f_e (⟨a_e, z⟩ + o_e + error of variance 1) + noise of variances `noise`,
// and z has the prior precision `precision`, its mean given as precision · mean. Errors of another
// variance are the caller's to scale away: f_e by their deviation, a_e and k_e by its inverse.
struct Posterior {
  const std::int64_t* starts;
  const std::int32_t* columns;
  const float* table;  // table_rows × width: features, then unknown, then known design
  std::size_t table_rows;
  std::size_t width;      // a multiple of 16
  std::size_t measured;   // D
  std::size_t design;     // where the design begins: D rounded up to a multiple of 16
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
// P = (Hᵀ G⁻¹ H + precision)⁻¹ and the mean P (Hᵀ G⁻¹ (y − Σ f o) + pull). Rows do not depend on
// each other. Sums over entries are in floats for a few entries, in doubles beyond.
void posterior_rows(const Posterior& problem, std::size_t begin, std::size_t end,
                    const PosteriorOutput& out, InstructionSet set);

// out[e] = ⟨rows[row], others[columns[e]]⟩ for the entries e of each row in [begin, end).
void products(const std::int64_t* starts, const std::int32_t* columns, const float* rows,
              const float* others, std::size_t other_rows, std::size_t width, std::size_t begin,
              std::size_t end, float* out);

}  // namespace taciturn
