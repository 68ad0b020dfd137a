#include "posterior.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "targets.hpp"
#include "csr.hpp"
#include "gram.hpp"

namespace taciturn {

namespace {

using namespace gram;

inline void require_solution(bool found) {
  if (!found) throw std::domain_error("the equations of a row have no solution");
}

template <typename Tile>
inline __attribute__((always_inline)) void run(const Posterior& problem, std::size_t begin,
                                               std::size_t end, const PosteriorOutput& out) {
  const std::size_t width = problem.width, features = problem.features;
  const std::size_t unknown = problem.unknown, design = problem.design;
  const std::size_t wide = width + 1;          // one more column for the noisy sums
  const std::size_t small = 2 * unknown + 1;   // precision, pull, identity
  std::vector<float> panel(chunk * width);
  std::vector<double> sums(design * width), system(features * wide), inner(unknown * small);
  for (std::size_t row = begin; row < end; ++row) {
    std::fill(inner.begin(), inner.end(), 0.0);
    for (std::size_t i = 0; i < unknown; ++i) {
      double* line = inner.data() + i * small;
      std::copy_n(problem.precision + i * unknown, unknown, line);
      line[unknown] = problem.pull[row * unknown + i];
      line[unknown + 1 + i] = 1;
    }
    const std::int64_t first = problem.starts[row], last = problem.starts[row + 1];
    if (first < last) {
      std::fill(sums.begin(), sums.end(), 0.0);
      const auto fill = [&](std::int64_t entry, float* line) __attribute__((always_inline)) {
        const std::uint32_t column = checked_column(problem.columns[entry], problem.table_rows);
        std::copy_n(problem.table + column * width, width, line);
      };
      add_entries<Tile>(first, last, width, features, fill, panel.data(), sums.data());
      for (std::size_t d = 0; d < features; ++d) {
        const double* from = sums.data() + d * width;
        double* line = system.data() + d * wide;
        std::copy(from + d, from + width, line + d);
        line[d] += problem.noise[d];
        double value = problem.sums[row * features + d];
        for (std::size_t c = 0; c < problem.known_count; ++c) {
          value -= problem.known[row * problem.known_count + c] * from[design + unknown + c];
        }
        line[width] = value;
      }
      require_solution(eliminate(system.data(), features, wide, wide));
      for (std::size_t d = 0; d < features; ++d) {
        const double* solved = system.data() + d * wide;
        for (std::size_t i = 0; i < unknown; ++i) {
          double* line = inner.data() + i * small;
          const double factor = solved[design + i];
          for (std::size_t j = i; j < unknown; ++j) line[j] += factor * solved[design + j];
          line[unknown] += factor * solved[width];
        }
      }
    }
    // (J | pull | I) becomes (U | U⁻ᵀ pull | U⁻ᵀ), and J⁻¹ = U⁻¹ U⁻ᵀ.
    require_solution(eliminate(inner.data(), unknown, small, small));
    double* mean = out.means + row * unknown;
    double* variance = out.variances + row * unknown;
    for (std::size_t i = 0; i < unknown; ++i) {
      double sum = 0;
      for (std::size_t k = i; k < unknown; ++k) {
        const double* line = inner.data() + k * small + unknown;
        sum += line[1 + i] * line[0];
      }
      mean[i] = sum;
      for (std::size_t j = i; j < unknown; ++j) {
        double covariance = 0;
        for (std::size_t k = j; k < unknown; ++k) {
          const double* line = inner.data() + k * small + unknown + 1;
          covariance += line[i] * line[j];
        }
        if (j == i) variance[i] = covariance;
        out.total[i * unknown + j] += covariance;
        if (j != i) out.total[j * unknown + i] += covariance;
      }
    }
  }
}

#if defined(TACITURN_X86)
TACITURN_AVX512_LOOPS void run_avx512(const Posterior& problem, std::size_t begin, std::size_t end,
                                      const PosteriorOutput& out) {
  run<Avx512Tile>(problem, begin, end, out);
}

TACITURN_AVX2_LOOPS void run_avx2(const Posterior& problem, std::size_t begin, std::size_t end,
                                      const PosteriorOutput& out) {
  run<Avx2Tile>(problem, begin, end, out);
}
#endif

}  // namespace

void posterior_rows(const Posterior& problem, std::size_t begin, std::size_t end,
                    const PosteriorOutput& out, InstructionSet set) {
#if defined(TACITURN_X86)
  if (set == InstructionSet::avx512) return run_avx512(problem, begin, end, out);
  if (set == InstructionSet::avx2) return run_avx2(problem, begin, end, out);
#endif
  static_cast<void>(set);
  run<PortableTile>(problem, begin, end, out);
}

void products(const std::int64_t* starts, const std::int32_t* columns, const float* rows,
              const float* others, std::size_t other_rows, std::size_t width, std::size_t begin,
              std::size_t end, float* out) {
  for (std::size_t row = begin; row < end; ++row) {
    const float* left = rows + row * width;
    for (std::int64_t entry = starts[row]; entry < starts[row + 1]; ++entry) {
      const std::uint32_t column = checked_column(columns[entry], other_rows);
      const float* right = others + column * width;
      float sum = 0;
      for (std::size_t k = 0; k < width; ++k) sum += left[k] * right[k];
      out[entry] = sum;
    }
  }
}

}  // namespace taciturn
