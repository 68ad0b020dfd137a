#include "rows.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "csr.hpp"
#include "targets.hpp"

namespace taciturn {

namespace {

inline __attribute__((always_inline)) void products(const std::int64_t* starts,
                                                    const std::int32_t* columns,
                                                    const double* values, std::size_t count,
                                                    std::size_t begin, std::size_t end,
                                                    double* out) {
  constexpr std::int64_t parts = 8;  // partial sums hide the latency of additions
  for (std::size_t row = begin; row < end; ++row) {
    const std::int64_t last = starts[row + 1];
    std::int64_t entry = starts[row];
    double sums[parts] = {};
    for (; entry + parts <= last; entry += parts) {
      for (std::int64_t p = 0; p < parts; ++p) {
        sums[p] += values[checked_column(columns[entry + p], count)];
      }
    }
    double sum = 0;
    for (; entry < last; ++entry) sum += values[checked_column(columns[entry], count)];
    for (const double part : sums) sum += part;
    out[row] = sum;
  }
}

inline __attribute__((always_inline)) void covariances(const Covariances& given, std::size_t begin,
                                                       std::size_t end, std::int64_t* total) {
  // A little less than 1, because floating point may exceed the prior by a little.
  constexpr float shrink = 1 - 1.0f / 65536;
  const std::size_t width = given.width;
  const auto one = static_cast<double>(given.one);
  std::vector<std::int64_t> steps(width);
  for (std::size_t row = begin; row < end; ++row) {
    const float* columns = given.columns + row * width;
    const double weight = given.weights[row];
    const auto in_steps = [one](double value) __attribute__((always_inline)) {
      const double scaled = value * one;
      return std::abs(scaled) <= one ? static_cast<std::int64_t>(scaled) : 0;  // false with NaN
    };
    const std::int64_t first = in_steps(weight);
    std::int64_t squares = first * first;
    for (std::size_t c = 0; c < width && squares <= given.bound;) {
      // Before a sum of squares of 48 bits could overflow, it is compared with the bound.
      for (const std::size_t next = std::min(c + (std::size_t{1} << 13), width); c < next; ++c) {
        const auto scale = static_cast<float>(weight * given.scales[c]);
        steps[c] = in_steps(columns[c] * scale * shrink);
        squares += steps[c] * steps[c];
      }
    }
    if (squares > given.bound) continue;
    total[0] += first;
    for (std::size_t c = 0; c < width; ++c) total[1 + c] += steps[c];
  }
}

// Adds a row times a matrix to `sums`.
inline __attribute__((always_inline)) void add_product(const double* row, const double* matrix,
                                                       std::size_t width, double* __restrict sums) {
  for (std::size_t i = 0; i < width; ++i) {
    const double factor = row[i];
    for (std::size_t j = 0; j < width; ++j) sums[j] += factor * matrix[i * width + j];
  }
}

inline __attribute__((always_inline)) void descend(const DescentStep& given, std::size_t begin,
                                                   std::size_t end, double* out) {
  const std::size_t width = given.width;
  std::vector<double> off(width), inside(width), move(width);
  for (std::size_t row = begin; row < end; ++row) {
    const double* x = given.rows + row * width;
    const double* centre = given.centre + row * width;
    for (std::size_t j = 0; j < width; ++j) off[j] = x[j] - centre[j];
    std::fill(inside.begin(), inside.end(), 0.0);
    std::fill(move.begin(), move.end(), 0.0);
    add_product(off.data(), given.whitening, width, inside.data());
    add_product(given.gradient + row * width, given.inward, width, move.data());
    const double certain = given.weights[row] * given.residual;
    const double times = given.times * given.precisions[row];
    for (std::size_t j = 0; j < width; ++j) {
      const double bend = given.counts[row] * given.eigenvalues[j];
      const double added = times * (certain + given.noise[j] / std::max(bend, 1e-9));
      move[j] = -given.step * (move[j] + added * inside[j]) / (bend + added);
    }
    double* result = out + row * width;
    std::copy_n(x, width, result);
    add_product(move.data(), given.outward, width, result);
  }
}

#if defined(TACITURN_X86)
TACITURN_AVX512_LOOPS void descend_avx512(const DescentStep& given, std::size_t begin,
                                          std::size_t end, double* out) {
  descend(given, begin, end, out);
}

TACITURN_AVX2_LOOPS void descend_avx2(const DescentStep& given, std::size_t begin, std::size_t end,
                                      double* out) {
  descend(given, begin, end, out);
}

TACITURN_AVX512_LOOPS void products_avx512(const std::int64_t* starts, const std::int32_t* columns,
                                           const double* values, std::size_t count,
                                           std::size_t begin, std::size_t end, double* out) {
  products(starts, columns, values, count, begin, end, out);
}

TACITURN_AVX2_LOOPS void products_avx2(const std::int64_t* starts, const std::int32_t* columns,
                                       const double* values, std::size_t count, std::size_t begin,
                                       std::size_t end, double* out) {
  products(starts, columns, values, count, begin, end, out);
}

TACITURN_AVX512_LOOPS void covariances_avx512(const Covariances& given, std::size_t begin,
                                              std::size_t end, std::int64_t* total) {
  covariances(given, begin, end, total);
}

TACITURN_AVX2_LOOPS void covariances_avx2(const Covariances& given, std::size_t begin,
                                          std::size_t end, std::int64_t* total) {
  covariances(given, begin, end, total);
}
#endif

}  // namespace

void pattern_products(const std::int64_t* starts, const std::int32_t* columns, const double* values,
                      std::size_t count, std::size_t begin, std::size_t end, double* out,
                      InstructionSet set) {
#if defined(TACITURN_X86)
  if (set == InstructionSet::avx512) {
    return products_avx512(starts, columns, values, count, begin, end, out);
  }
  if (set == InstructionSet::avx2) {
    return products_avx2(starts, columns, values, count, begin, end, out);
  }
#endif
  static_cast<void>(set);
  products(starts, columns, values, count, begin, end, out);
}

void add_covariances(const Covariances& given, std::size_t begin, std::size_t end,
                     std::int64_t* total, InstructionSet set) {
#if defined(TACITURN_X86)
  if (set == InstructionSet::avx512) return covariances_avx512(given, begin, end, total);
  if (set == InstructionSet::avx2) return covariances_avx2(given, begin, end, total);
#endif
  static_cast<void>(set);
  covariances(given, begin, end, total);
}

void descend_rows(const DescentStep& given, std::size_t begin, std::size_t end, double* out,
                  InstructionSet set) {
#if defined(TACITURN_X86)
  if (set == InstructionSet::avx512) return descend_avx512(given, begin, end, out);
  if (set == InstructionSet::avx2) return descend_avx2(given, begin, end, out);
#endif
  static_cast<void>(set);
  descend(given, begin, end, out);
}

}  // namespace taciturn
