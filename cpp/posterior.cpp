#include "posterior.hpp"

#include <algorithm>
#include <cmath>
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

// Memory for one row at a time, and the steps of its solution. J is the precision of the row's
// coefficients, and `pull` is J times their mean.
template <typename Tile>
class RowSolver {
 public:
  explicit RowSolver(const Posterior& problem)
      : problem_(problem),
        value_(problem.design + problem.unknown),
        stride_(rounded_up(std::max(problem.width, value_ + 1), slice)),
        small_(rounded_up(2 * problem.unknown + 1, rows_multiple)),
        panel_(std::max(problem.width, rounded_up(problem.features, slice))),
        sums_(rounded_up(problem.features, rows_multiple) * stride_),
        dual_((rounded_up(problem.features, rows_multiple)) *
              rounded_up(problem.features + problem.unknown + 1 + slice, slice)),
        inner_(problem.unknown * small_),
        roots_(problem.features),
        left_(problem.features),
        lines_(problem.features) {
    for (std::size_t d = 0; d < problem.features; ++d) {
      roots_[d] = static_cast<float>(1 / std::sqrt(problem.noise[d]));
    }
  }

  // Sets J and pull to those of the prior.
  inline __attribute__((always_inline)) void begin(std::size_t row) {
    const std::size_t unknown = problem_.unknown;
    std::fill_n(inner_.data, unknown * small_, 0.0);
    for (std::size_t i = 0; i < unknown; ++i) {
      double* line = inner_.data + i * small_;
      std::copy_n(problem_.precision + i * unknown, unknown, line);
      line[unknown] = problem_.pull[row * unknown + i];
      line[unknown + 1 + i] = 1;
    }
  }

  // Adds what the entries of a row say, at least one. The equations have a row for each feature.
  inline __attribute__((always_inline)) void add_by_feature(std::size_t row) {
    const std::size_t features = problem_.features;
    double* sums = sums_.data;
    const auto line = [&](std::int64_t entry) __attribute__((always_inline)) {
      return line_of(entry);
    };
    sum_entries<Tile>(problem_.starts[row], problem_.starts[row + 1], problem_.width, features,
                      line, panel_, {sums, stride_});
    const double* known = problem_.known + row * problem_.known_count;
    for (std::size_t d = 0; d < features; ++d) {
      double* found = sums + d * stride_;
      found[d] += problem_.noise[d];
      double value = problem_.sums[row * features + d];
      for (std::size_t c = 0; c < problem_.known_count; ++c) value -= known[c] * found[value_ + c];
      found[value_] = value;
    }
    require_solution(eliminate<Tile>(sums, features, value_ + 1, stride_));
    for (std::size_t d = 0; d < features; ++d) {
      add_square(sums + d * stride_ + problem_.design, 1.0);
      add_pull(sums + d * stride_ + problem_.design);
    }
  }

  // The same in equations with a row for each entry, for rows with fewer entries than features. With
  // the entries' features F (D × n) and design A (n × p), and K = Fᵀ diag(noise)⁻¹ F,
  //   Hᵀ G⁻¹ H = Aᵀ (1 − (1 + K)⁻¹) A   and   Hᵀ G⁻¹ y = Aᵀ (1 + K)⁻¹ Fᵀ diag(noise)⁻¹ y.
  inline __attribute__((always_inline)) void add_by_entry(std::size_t row) {
    const std::size_t features = problem_.features, unknown = problem_.unknown;
    const std::int64_t first = problem_.starts[row];
    const auto entries = static_cast<std::size_t>(problem_.starts[row + 1] - first);
    for (std::size_t i = 0; i < entries; ++i) {
      lines_[i] = line_of(first + static_cast<std::int64_t>(i));
    }
    const std::size_t width = rounded_up(entries, slice);
    const std::size_t stride = rounded_up(width + unknown + 1, slice);
    double* system = dual_.data;
    sum_by_entry(entries, width, {system, stride});
    set_left(row, entries);
    for (std::size_t i = 0; i < entries; ++i) {
      double* line = system + i * stride;
      line[i] += 1;
      std::fill(line + entries, line + width, 0.0);
      std::copy_n(lines_[i] + problem_.design, unknown, line + width);
      line[width + unknown] = dot(lines_[i], left_.data(), features);
      add_square(line + width, 1.0);
    }
    require_solution(eliminate<Tile>(system, entries, width + unknown + 1, stride));
    for (std::size_t i = 0; i < entries; ++i) {
      add_square(system + i * stride + width, -1.0);
      add_pull(system + i * stride + width);
    }
  }

  // Writes mean and variances of a row, and adds the covariance to the total.
  inline __attribute__((always_inline)) void finish(std::size_t row, const PosteriorOutput& out) {
    const std::size_t unknown = problem_.unknown;
    const double* inner = inner_.data;
    // (J | pull | I) becomes (U | U⁻ᵀ pull | U⁻ᵀ), and J⁻¹ = U⁻¹ U⁻ᵀ.
    require_solution(eliminate<Tile>(inner_.data, unknown, 2 * unknown + 1, small_));
    double* mean = out.means + row * unknown;
    double* variance = out.variances + row * unknown;
    for (std::size_t i = 0; i < unknown; ++i) {
      double sum = 0;
      for (std::size_t k = i; k < unknown; ++k) {
        const double* line = inner + k * small_ + unknown;
        sum += line[1 + i] * line[0];
      }
      mean[i] = sum;
      for (std::size_t j = i; j < unknown; ++j) {
        double covariance = 0;
        for (std::size_t k = j; k < unknown; ++k) {
          const double* line = inner + k * small_ + unknown + 1;
          covariance += line[i] * line[j];
        }
        if (j == i) variance[i] = covariance;
        out.total[i * unknown + j] += covariance;
        if (j != i) out.total[j * unknown + i] += covariance;
      }
    }
  }

 private:
  inline __attribute__((always_inline)) const float* line_of(std::int64_t entry) const {
    return problem_.table +
           checked_column(problem_.columns[entry], problem_.table_rows) * problem_.width;
  }

  // K: products of entries, summed over the features.
  inline __attribute__((always_inline)) void sum_by_entry(std::size_t entries, std::size_t width,
                                                          Sums sums) {
    for (std::size_t begin = 0; begin < problem_.features; begin += chunk) {
      const std::size_t count = std::min(chunk, problem_.features - begin);
      for (std::size_t i = 0; i < width; ++i) {
        float* to = panel_.column(i);
        for (std::size_t d = 0; d < count; ++d) {
          to[d * slice] = i < entries ? lines_[i][begin + d] * roots_[begin + d] : 0.0f;
        }
      }
      add_products<Tile>(panel_, count, width, entries, sums, begin == 0);
    }
  }

  // diag(noise)⁻¹ (y − Σ f o) of a row.
  inline __attribute__((always_inline)) void set_left(std::size_t row, std::size_t entries) {
    const std::size_t features = problem_.features;
    const double* known = problem_.known + row * problem_.known_count;
    std::copy_n(problem_.sums + row * features, features, left_.data());
    for (std::size_t i = 0; i < entries; ++i) {
      double offset = 0;
      for (std::size_t c = 0; c < problem_.known_count; ++c) {
        offset += known[c] * lines_[i][value_ + c];
      }
      for (std::size_t d = 0; d < features; ++d) left_[d] -= offset * lines_[i][d];
    }
    for (std::size_t d = 0; d < features; ++d) left_[d] /= problem_.noise[d];
  }

  // Adds sign · a aᵀ to J, for the p numbers a at the beginning of a line.
  inline __attribute__((always_inline)) void add_square(const double* a, double sign) {
    for (std::size_t i = 0; i < problem_.unknown; ++i) {
      double* line = inner_.data + i * small_;
      const double factor = sign * a[i];
      for (std::size_t j = i; j < problem_.unknown; ++j) line[j] += factor * a[j];
    }
  }

  // Adds a · v to the pull, where v follows the p numbers a.
  inline __attribute__((always_inline)) void add_pull(const double* a) {
    const std::size_t unknown = problem_.unknown;
    for (std::size_t i = 0; i < unknown; ++i) inner_.data[i * small_ + unknown] += a[i] * a[unknown];
  }

  const Posterior& problem_;
  std::size_t value_;   // column of the noisy sums in the equations: the first of the known design
  std::size_t stride_;  // of the equations by feature
  std::size_t small_;   // stride of (J | pull | I)
  Panel panel_;
  Aligned<double> sums_, dual_, inner_;
  std::vector<float> roots_;  // 1/√noise
  std::vector<double> left_;
  std::vector<const float*> lines_;
};

template <typename Tile>
inline __attribute__((always_inline)) void run(const Posterior& problem, std::size_t begin,
                                               std::size_t end, const PosteriorOutput& out) {
  RowSolver<Tile> solver(problem);
  for (std::size_t row = begin; row < end; ++row) {
    const auto entries = static_cast<std::size_t>(problem.starts[row + 1] - problem.starts[row]);
    solver.begin(row);
    if (entries >= problem.features && entries > 0) {
      solver.add_by_feature(row);
    } else if (entries > 0) {
      solver.add_by_entry(row);
    }
    solver.finish(row, out);
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
