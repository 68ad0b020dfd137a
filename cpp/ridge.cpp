#include "ridge.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "gram.hpp"

namespace taciturn {

namespace {

using namespace gram;

inline __attribute__((always_inline)) void run(const Ridge& problem, std::size_t begin,
                                               std::size_t end, float* out) {
  const std::size_t width = problem.width;
  const std::size_t wide = (width / lanes + 1) * lanes;  // a column for the targets, and padding
  std::vector<float> panel(chunk * wide);
  std::vector<double> sums(((width - 1) / tile_rows + 1) * tile_rows * wide), found(width);
  for (std::size_t row = begin; row < end; ++row) {
    const std::int64_t first = problem.starts[row], last = problem.starts[row + 1];
    float* solution = out + row * width;
    std::fill_n(solution, width, 0.0f);
    if (first == last) continue;
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::int64_t entry = first; entry < last; entry += chunk) {
      const auto entries = static_cast<std::size_t>(std::min<std::int64_t>(chunk, last - entry));
      for (std::size_t e = 0; e < entries; ++e) {
        const auto column = static_cast<std::uint32_t>(problem.columns[entry + e]);
        if (column >= problem.partner_rows) throw std::out_of_range("a column has no features");
        const float* partner = problem.partners + column * width;
        float* line = panel.data() + e * wide;
        line[0] = 1;
        std::copy(partner + 1, partner + width, line + 1);
        line[width] = problem.targets[entry + e] - partner[0];
      }
      add_products(panel.data(), entries, wide, width, sums.data());
    }
    for (std::size_t i = 0; i < width; ++i) {
      sums[i * wide + i] +=
          static_cast<double>(last - first) * problem.weighted[i] + problem.fixed[i];
    }
    // (S | b) becomes (U | U⁻ᵀ b). An error would depend on the ratings of a row.
    if (!eliminate(sums.data(), width, width + 1, wide)) continue;
    for (std::size_t i = width; i-- > 0;) {
      const double* line = sums.data() + i * wide;
      const double known = dot(line + i + 1, found.data() + i + 1, width - i - 1);
      found[i] = (line[width] - known) / line[i];
      solution[i] = static_cast<float>(found[i]);
    }
  }
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512"))) void
run_avx512(const Ridge& problem, std::size_t begin, std::size_t end, float* out) {
  run(problem, begin, end, out);
}
#endif

}  // namespace

void ridge_rows(const Ridge& problem, std::size_t begin, std::size_t end, float* out,
                InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::avx512) return run_avx512(problem, begin, end, out);
#endif
  static_cast<void>(set);
  run(problem, begin, end, out);
}

}  // namespace taciturn
