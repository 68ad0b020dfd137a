#include "pack.hpp"

#include <algorithm>
#include <cmath>

#include "targets.hpp"

namespace taciturn {

namespace {

constexpr double rounder = 0x1.8p52;  // adding and subtracting this rounds to an integer
constexpr double huge = 1e150;        // squares of smaller numbers do not overflow

// Σ (factor · x)², in eight partial sums, whatever the size of registers: all instruction sets add in
// the same order.
inline __attribute__((always_inline)) double sum_squares(const double* x, std::size_t width,
                                                         double factor) {
  double sums[8] = {};
  std::size_t k = 0;
  for (; k + 8 <= width; k += 8) {
    for (std::size_t p = 0; p < 8; ++p) {
      const double scaled = factor * x[k + p];
      sums[p] += scaled * scaled;
    }
  }
  for (std::size_t p = 0; k + p < width; ++p) {
    const double scaled = factor * x[k + p];
    sums[p] += scaled * scaled;
  }
  for (int half = 4; half > 0; half /= 2) {
    for (int p = 0; p < half; ++p) sums[p] += sums[p + half];
  }
  return sums[0];
}

// Writes factor · row, rounded to whole numbers of at most 2^15, and returns Σ of their squares.
inline __attribute__((always_inline)) std::int64_t round(const double* __restrict row,
                                                         std::size_t width, double factor,
                                                         std::int16_t* __restrict out) {
  std::int64_t squares = 0;
  for (std::size_t k = 0; k < width; ++k) {
    const auto step = static_cast<std::int32_t>((row[k] * factor + rounder) - rounder);
    out[k] = static_cast<std::int16_t>(step);
    squares += step * step;
  }
  return squares;
}

// Norm of a row; infinity if an entry is not finite.
inline __attribute__((always_inline)) double norm_of(const double* row, std::size_t width) {
  const double length = std::sqrt(sum_squares(row, width, 1.0));
  if (length < huge) return length;
  double largest = 0;
  for (std::size_t k = 0; k < width; ++k) {
    if (!std::isfinite(row[k])) return INFINITY;
    largest = std::max(largest, std::abs(row[k]));
  }
  return largest * std::sqrt(sum_squares(row, width, 1 / largest));
}

struct Rows {
  const double* features;
  const double* factors;
  std::size_t width, stride;
  std::int32_t norm;
  std::int16_t* out;
};

inline __attribute__((always_inline)) bool pack(const Rows& rows, std::size_t begin,
                                                std::size_t end) {
  const std::int64_t bound = std::int64_t{rows.norm} * rows.norm;
  const std::size_t width = rows.width;
  for (std::size_t row = begin; row < end; ++row) {
    const double* in = rows.features + row * width;
    std::int16_t* packed = rows.out + row * rows.stride;
    for (std::size_t k = width; k < rows.stride; ++k) packed[k] = 0;
    const double length = norm_of(in, width) * std::abs(rows.factors[row]);
    if (!std::isfinite(length)) return false;
    const double given = rows.factors[row];
    const double factor = (length > 1 ? given / length : given) * rows.norm;
    if (round(in, width, factor, packed) <= bound) continue;
    // Rounding made the row too long: shrink it slightly and round towards zero instead.
    std::int64_t squares = 0;
    for (std::size_t k = 0; k < width; ++k) {
      packed[k] = static_cast<std::int16_t>(in[k] * factor * (1 - 0x1p-40));
      squares += std::int32_t{packed[k]} * packed[k];
    }
    if (squares > bound) std::fill_n(packed, width, std::int16_t{0});
  }
  return true;
}

#if defined(TACITURN_X86)
TACITURN_AVX512_LOOPS bool pack_avx512(const Rows& rows, std::size_t begin, std::size_t end) {
  return pack(rows, begin, end);
}

TACITURN_AVX2_LOOPS bool pack_avx2(const Rows& rows, std::size_t begin, std::size_t end) {
  return pack(rows, begin, end);
}
#endif

}  // namespace

bool pack_rows(const double* features, const double* factors, std::size_t width,
               std::size_t stride, std::int32_t norm, std::size_t begin, std::size_t end,
               std::int16_t* out, InstructionSet set) {
  const Rows rows{features, factors, width, stride, norm, out};
#if defined(TACITURN_X86)
  if (set == InstructionSet::avx512) return pack_avx512(rows, begin, end);
  if (set == InstructionSet::avx2) return pack_avx2(rows, begin, end);
#endif
  static_cast<void>(set);
  return pack(rows, begin, end);
}

}  // namespace taciturn
