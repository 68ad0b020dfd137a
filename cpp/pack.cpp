#include "pack.hpp"

#include <algorithm>
#include <cmath>

#include "targets.hpp"

namespace taciturn {

namespace {

constexpr double rounder = 0x1.8p52;  // adding and subtracting this rounds to an integer
constexpr double huge = 1e150;        // squares of smaller numbers do not overflow

// Σ (factor · x)², in eight partial sums that are added in the order of the vector instructions.
double squares_portable(const double* x, std::size_t width, double factor) {
  double sums[8] = {};
  for (std::size_t k = 0; k < width; ++k) sums[k % 8] += (factor * x[k]) * (factor * x[k]);
  for (int half = 4; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  }
  return sums[0];
}

// Norm of a row; infinity if an entry is not finite.
template <typename Squares>
inline __attribute__((always_inline)) double norm_of(const double* row, std::size_t width,
                                                     Squares sum_squares) {
  const double length = std::sqrt(sum_squares(row, width, 1.0));
  if (length < huge) return length;
  double largest = 0;
  for (std::size_t k = 0; k < width; ++k) {
    if (!std::isfinite(row[k])) return INFINITY;
    largest = std::max(largest, std::abs(row[k]));
  }
  return largest * std::sqrt(sum_squares(row, width, 1 / largest));
}

std::int64_t round_portable(const double* row, std::size_t width, double factor,
                            std::int16_t* out) {
  std::int64_t squares = 0;
  for (std::size_t k = 0; k < width; ++k) {
    const auto step = static_cast<std::int32_t>((row[k] * factor + rounder) - rounder);
    out[k] = static_cast<std::int16_t>(step);
    squares += step * step;
  }
  return squares;
}

#if defined(__x86_64__)
TACITURN_AVX512 inline __mmask8 there(std::size_t left) {
  return static_cast<__mmask8>((1u << std::min<std::size_t>(8, left)) - 1);
}

TACITURN_AVX512 inline double squares_avx512(const double* x, std::size_t width, double factor) {
  __m512d sums = _mm512_setzero_pd();
  for (std::size_t k = 0; k < width; k += 8) {
    const __m512d scaled =
        _mm512_mul_pd(_mm512_set1_pd(factor), _mm512_maskz_loadu_pd(there(width - k), x + k));
    sums = _mm512_add_pd(sums, _mm512_mul_pd(scaled, scaled));
  }
  const __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(sums), _mm512_extractf64x4_pd(sums, 1));
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

TACITURN_AVX512 inline std::int64_t round_avx512(const double* row, std::size_t width, double factor,
                                       std::int16_t* out) {
  __m512i squares = _mm512_setzero_si512();
  for (std::size_t k = 0; k < width; k += 8) {
    const __mmask8 mask = there(width - k);
    const __m512d in = _mm512_mul_pd(_mm512_maskz_loadu_pd(mask, row + k), _mm512_set1_pd(factor));
    const __m256i steps = _mm512_cvtpd_epi32(in);  // to nearest, ties to even
    _mm_mask_storeu_epi16(out + k, mask, _mm256_cvtepi32_epi16(steps));
    const __m512i wide = _mm512_cvtepi32_epi64(steps);
    squares = _mm512_add_epi64(squares, _mm512_mul_epi32(wide, wide));
  }
  return _mm512_reduce_add_epi64(squares);
}
#endif

template <typename Squares, typename Round>
inline __attribute__((always_inline)) bool pack(const double* features, const double* factors,
                 std::size_t width, std::size_t stride, std::int32_t norm, std::size_t begin, std::size_t end,
                 std::int16_t* out, Squares sum_squares, Round round) {
  const std::int64_t bound = std::int64_t{norm} * norm;
  for (std::size_t row = begin; row < end; ++row) {
    const double* in = features + row * width;
    std::int16_t* packed = out + row * stride;
    for (std::size_t k = width; k < stride; ++k) packed[k] = 0;
    const double length = norm_of(in, width, sum_squares) * std::abs(factors[row]);
    if (!std::isfinite(length)) return false;
    const double factor = (length > 1 ? factors[row] / length : factors[row]) * norm;
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

#if defined(__x86_64__)
// A separate function with the target attribute, so that the intrinsics are inlined.
TACITURN_AVX512 bool pack_avx512(const double* features, const double* factors, std::size_t width,
                              std::size_t stride, std::int32_t norm, std::size_t begin,
                              std::size_t end, std::int16_t* out) {
  return pack(features, factors, width, stride, norm, begin, end, out, squares_avx512,
              round_avx512);
}
#endif

}  // namespace

bool pack_rows(const double* features, const double* factors, std::size_t width,
               std::size_t stride, std::int32_t norm, std::size_t begin, std::size_t end,
               std::int16_t* out, InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::avx512) {
    return pack_avx512(features, factors, width, stride, norm, begin, end, out);
  }
#endif
  static_cast<void>(set);
  return pack(features, factors, width, stride, norm, begin, end, out, squares_portable,
              round_portable);
}

}  // namespace taciturn
