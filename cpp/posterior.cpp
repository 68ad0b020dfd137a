#include "posterior.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace tacit {

namespace {

constexpr std::size_t lanes = 16;
constexpr std::size_t chunk = 64;     // entries summed in floats
constexpr std::size_t tile_rows = 8;  // a tile of the sums is tile_rows × (tile_lanes · lanes)
constexpr std::size_t tile_lanes = 2;

typedef float Lanes __attribute__((vector_size(lanes * sizeof(float))));

inline __attribute__((always_inline)) Lanes load(const float* from) {
  Lanes vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}

// Adds Σ_e panel[e, a] · panel[e, b] to sums[a, b] for a tile of `Wide` lanes beginning at (a, b).
template <std::size_t Wide>
inline __attribute__((always_inline)) void add_tile(const float* panel, std::size_t entries,
                                                    std::size_t width, std::size_t a,
                                                    std::size_t b, double* sums) {
  Lanes tile[tile_rows][Wide] = {};
  for (std::size_t e = 0; e < entries; ++e) {
    const float* line = panel + e * width;
    Lanes right[Wide];
    for (std::size_t w = 0; w < Wide; ++w) right[w] = load(line + b + w * lanes);
    for (std::size_t i = 0; i < tile_rows; ++i) {
      for (std::size_t w = 0; w < Wide; ++w) tile[i][w] += line[a + i] * right[w];
    }
  }
  for (std::size_t i = 0; i < tile_rows; ++i) {
    double* line = sums + (a + i) * width + b;
    for (std::size_t w = 0; w < Wide; ++w) {
      for (std::size_t l = 0; l < lanes; ++l) line[w * lanes + l] += tile[i][w][l];
    }
  }
}

// Adds Σ_e panel[e, a] · panel[e, b] for the features a and the columns b ≥ a.
inline __attribute__((always_inline)) void add_products(const float* panel, std::size_t entries,
                                                        std::size_t width, std::size_t features,
                                                        double* sums) {
  for (std::size_t a = 0; a < features; a += tile_rows) {
    std::size_t b = a / lanes * lanes;
    for (; b + tile_lanes * lanes <= width; b += tile_lanes * lanes) {
      add_tile<tile_lanes>(panel, entries, width, a, b, sums);
    }
    if (b < width) add_tile<1>(panel, entries, width, a, b, sums);
  }
}

// Subtracts the multiples of `Count` pivot rows, from first on, that clear their columns in a row.
template <std::size_t Count>
inline __attribute__((always_inline)) void subtract(const double* rows, std::size_t first,
                                                    std::size_t width, std::size_t at,
                                                    double* row) {
  const double* pivots[Count];
  double factors[Count];
  for (std::size_t p = 0; p < Count; ++p) {
    pivots[p] = rows + (first + p) * width;
    factors[p] = pivots[p][at];
  }
  for (std::size_t j = at; j < width; ++j) {
    double value = row[j];
    for (std::size_t p = 0; p < Count; ++p) value -= factors[p] * pivots[p][j];
    row[j] = value;
  }
}

// Turns the first n rows of (S | R), S symmetric with its upper triangle given, into (U | U⁻ᵀR)
// with S = UᵀU; `width` numbers a row, of which those before the diagonal are left alone. Rows below
// are changed by several pivots at once, so that they are read less often.
inline __attribute__((always_inline)) void eliminate(double* rows, std::size_t n,
                                                     std::size_t width) {
  constexpr std::size_t together = 8;
  for (std::size_t first = 0; first < n; first += together) {
    const std::size_t last = std::min(first + together, n);
    for (std::size_t k = first; k < last; ++k) {
      double* pivot = rows + k * width;
      for (std::size_t p = first; p < k; ++p) subtract<1>(rows, p, width, k, pivot);
      if (!(pivot[k] > 0)) throw std::domain_error("the equations of a row have no solution");
      const double inverse = 1 / std::sqrt(pivot[k]);
      for (std::size_t j = k; j < width; ++j) pivot[j] *= inverse;
    }
    for (std::size_t i = last; i < n; ++i) {
      subtract<together>(rows, first, width, i, rows + i * width);
    }
  }
}

inline __attribute__((always_inline)) void run(const Posterior& problem, std::size_t begin,
                                               std::size_t end, const PosteriorOutput& out) {
  const std::size_t width = problem.width, measured = problem.measured;
  const std::size_t unknown = problem.unknown, design = problem.design;
  const std::size_t wide = width + 1;          // one more column for what was released
  const std::size_t small = 2 * unknown + 1;   // precision, pull, identity
  std::vector<float> panel(chunk * width);
  std::vector<double> sums(design * width), system(measured * wide), inner(unknown * small);
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
      for (std::int64_t entry = first; entry < last; entry += chunk) {
        const auto entries = static_cast<std::size_t>(std::min<std::int64_t>(chunk, last - entry));
        for (std::size_t e = 0; e < entries; ++e) {
          const auto column = static_cast<std::uint32_t>(problem.columns[entry + e]);
          if (column >= problem.table_rows) throw std::out_of_range("a column has no features");
          std::copy_n(problem.table + column * width, width, panel.data() + e * width);
        }
        add_products(panel.data(), entries, width, measured, sums.data());
      }
      for (std::size_t d = 0; d < measured; ++d) {
        const double* from = sums.data() + d * width;
        double* line = system.data() + d * wide;
        std::copy(from + d, from + width, line + d);
        line[d] += problem.noise[d];
        double value = problem.sums[row * measured + d];
        for (std::size_t c = 0; c < problem.known_count; ++c) {
          value -= problem.known[row * problem.known_count + c] * from[design + unknown + c];
        }
        line[width] = value;
      }
      eliminate(system.data(), measured, wide);
      for (std::size_t d = 0; d < measured; ++d) {
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
    eliminate(inner.data(), unknown, small);
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

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512"))) void
run_avx512(const Posterior& problem, std::size_t begin, std::size_t end,
           const PosteriorOutput& out) {
  run(problem, begin, end, out);
}
#endif

}  // namespace

void posterior_rows(const Posterior& problem, std::size_t begin, std::size_t end,
                    const PosteriorOutput& out, InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::avx512) return run_avx512(problem, begin, end, out);
#endif
  (void)set;
  run(problem, begin, end, out);
}

void products(const std::int64_t* starts, const std::int32_t* columns, const float* rows,
              const float* others, std::size_t other_rows, std::size_t width, std::size_t begin,
              std::size_t end, float* out) {
  for (std::size_t row = begin; row < end; ++row) {
    const float* left = rows + row * width;
    for (std::int64_t entry = starts[row]; entry < starts[row + 1]; ++entry) {
      const auto column = static_cast<std::uint32_t>(columns[entry]);
      if (column >= other_rows) throw std::out_of_range("a column has no features");
      const float* right = others + column * width;
      float sum = 0;
      for (std::size_t k = 0; k < width; ++k) sum += left[k] * right[k];
      out[entry] = sum;
    }
  }
}

}  // namespace tacit
