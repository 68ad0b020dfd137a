#include "ridge.hpp"

#include <algorithm>
#include <vector>

#include "targets.hpp"
#include "csr.hpp"
#include "gram.hpp"

namespace taciturn {

namespace {

using namespace gram;

// Column `at` of (UᵀU)⁻¹, where U has `width` rows that are `wide` apart.
inline __attribute__((always_inline)) void inverse_column(const double* upper, std::size_t width,
                                                          std::size_t wide, std::size_t at,
                                                          double* scratch, float* out) {
  std::fill_n(scratch, width, 0.0);
  scratch[at] = 1;
  for (std::size_t i = at; i < width; ++i) {
    const double* line = upper + i * wide;
    const double value = scratch[i] /= line[i];
    for (std::size_t j = i + 1; j < width; ++j) scratch[j] -= value * line[j];
  }
  for (std::size_t i = width; i-- > 0;) {
    const double* line = upper + i * wide;
    scratch[i] = (scratch[i] - dot(line + i + 1, scratch + i + 1, width - i - 1)) / line[i];
    out[i] = static_cast<float>(scratch[i]);
  }
}

template <typename Tile>
inline __attribute__((always_inline)) void run(const Ridge& problem, std::size_t begin,
                                               std::size_t end, float* out,
                                               const InverseColumns& inverse) {
  const std::size_t width = problem.width;
  const std::size_t wide = (width / lanes + 1) * lanes;  // a column for the targets, and padding
  Panel panel(wide);
  const Aligned<double> memory(rounded_up(width, rows_multiple) * wide);
  double* sums = memory.data;
  std::vector<float> line(wide);
  std::vector<double> found(width);
  for (std::size_t row = begin; row < end; ++row) {
    const std::int64_t first = problem.starts[row], last = problem.starts[row + 1];
    float* solution = out + row * width;
    float* columns = inverse.out + row * inverse.count * width;
    std::fill_n(solution, width, 0.0f);
    std::fill_n(columns, inverse.count * width, 0.0f);
    if (first == last) continue;
    const auto features = [&](std::int64_t entry) __attribute__((always_inline)) {
      const std::uint32_t column = checked_column(problem.columns[entry], problem.counterpart_rows);
      const float* counterpart = problem.counterparts + column * width;
      line[0] = 1;
      std::copy(counterpart + 1, counterpart + width, line.data() + 1);
      line[width] = problem.targets[entry] - counterpart[0];
      return line.data();
    };
    sum_entries<Tile>(first, last, wide, width, features, panel, {sums, wide});
    for (std::size_t i = 0; i < width; ++i) {
      sums[i * wide + i] +=
          static_cast<double>(last - first) * problem.by_count[i] + problem.fixed[i];
    }
    // (S | b) becomes (U | U⁻ᵀ b). No exception here: whether it is thrown would depend on ratings.
    if (!eliminate<Tile>(sums, width, width + 1, wide)) continue;
    for (std::size_t i = width; i-- > 0;) {
      const double* line = sums + i * wide;
      const double known = dot(line + i + 1, found.data() + i + 1, width - i - 1);
      found[i] = (line[width] - known) / line[i];
      solution[i] = static_cast<float>(found[i]);
    }
    for (std::size_t c = 0; c < inverse.count; ++c) {
      inverse_column(sums, width, wide, 1 + c, found.data(), columns + c * width);
    }
  }
}

#if defined(TACITURN_X86)
TACITURN_AVX512_LOOPS void run_avx512(const Ridge& problem, std::size_t begin, std::size_t end,
                                      float* out, const InverseColumns& inverse) {
  run<Avx512Tile>(problem, begin, end, out, inverse);
}

TACITURN_AVX2_LOOPS void run_avx2(const Ridge& problem, std::size_t begin, std::size_t end,
                                      float* out, const InverseColumns& inverse) {
  run<Avx2Tile>(problem, begin, end, out, inverse);
}
#endif

}  // namespace

void ridge_rows(const Ridge& problem, std::size_t begin, std::size_t end, float* out,
                const InverseColumns& inverse, InstructionSet set) {
#if defined(TACITURN_X86)
  if (set == InstructionSet::avx512) return run_avx512(problem, begin, end, out, inverse);
  if (set == InstructionSet::avx2) return run_avx2(problem, begin, end, out, inverse);
#endif
  static_cast<void>(set);
  run<PortableTile>(problem, begin, end, out, inverse);
}

}  // namespace taciturn
