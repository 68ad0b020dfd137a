// Vectors of whole numbers of 16 and of 32 bits, for the kernels that add in exact integers.
//
// Arithmetic, comparisons and conversions are those of the compiler's vectors. These types add what the
// compiler has no operator for. Functions are inlined into functions with the same target attribute.
#pragma once

#include <cstddef>
#include <cstdint>

#include "targets.hpp"

namespace taciturn {

#define TACITURN_INLINE static inline __attribute__((always_inline))

// 128 bits: registers of SSE2, which every x86-64 processor has, and of NEON.
struct Vectors128 {
  static constexpr std::size_t bytes = 16;
  typedef std::int32_t Wide __attribute__((vector_size(bytes)));
  typedef std::int16_t Short __attribute__((vector_size(bytes)));
  typedef std::int16_t Half __attribute__((vector_size(bytes / 2)));
  typedef float Real __attribute__((vector_size(bytes)));

#if defined(TACITURN_X86)
  // Lane i is a[2i]·b[2i] + a[2i+1]·b[2i+1].
  TACITURN_INLINE Wide products(Short a, Short b) {
    return (Wide)_mm_madd_epi16((__m128i)a, (__m128i)b);
  }

  // Pairs (a[i], b[i]) of the lower half of every 128 bits, and of the upper half.
  TACITURN_INLINE Short low_pairs(Short a, Short b) {
    return (Short)_mm_unpacklo_epi16((__m128i)a, (__m128i)b);
  }
  TACITURN_INLINE Short high_pairs(Short a, Short b) {
    return (Short)_mm_unpackhi_epi16((__m128i)a, (__m128i)b);
  }

  TACITURN_INLINE bool any(Wide mask) { return _mm_movemask_epi8((__m128i)mask) != 0; }

  // Lane i is the sum of the lanes of p[i].
  TACITURN_INLINE Wide sum_lanes(const Wide* p) {
    const auto low = [](Wide a, Wide b) __attribute__((always_inline)) {
      return (Wide)_mm_unpacklo_epi32((__m128i)a, (__m128i)b) +
             (Wide)_mm_unpackhi_epi32((__m128i)a, (__m128i)b);
    };
    const auto a = (__m128i)low(p[0], p[1]), b = (__m128i)low(p[2], p[3]);
    return (Wide)_mm_unpacklo_epi64(a, b) + (Wide)_mm_unpackhi_epi64(a, b);
  }
#else
  TACITURN_INLINE Wide products(Short a, Short b) {
    const Wide x = (Wide)a, y = (Wide)b;  // odd lanes are the upper halves
    return ((x << 16) >> 16) * ((y << 16) >> 16) + (x >> 16) * (y >> 16);
  }
  TACITURN_INLINE Short low_pairs(Short a, Short b) {
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  }
  TACITURN_INLINE Short high_pairs(Short a, Short b) {
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  }
  TACITURN_INLINE bool any(Wide mask) { return (mask[0] | mask[1] | mask[2] | mask[3]) != 0; }
  TACITURN_INLINE Wide sum_lanes(const Wide* p) {
    Wide sums;
    for (int i = 0; i < 4; ++i) sums[i] = (p[i][0] + p[i][1]) + (p[i][2] + p[i][3]);
    return sums;
  }
#endif
};

#if defined(TACITURN_X86)
#define TACITURN_AVX2_INLINE TACITURN_AVX2 TACITURN_INLINE

// 256 bits: registers of AVX2. As above, with the order of its instructions in every 128 bits.
struct Vectors256 {
  static constexpr std::size_t bytes = 32;
  typedef std::int32_t Wide __attribute__((vector_size(bytes)));
  typedef std::int16_t Short __attribute__((vector_size(bytes)));
  typedef std::int16_t Half __attribute__((vector_size(bytes / 2)));
  typedef float Real __attribute__((vector_size(bytes)));

  TACITURN_AVX2_INLINE Wide products(Short a, Short b) {
    return (Wide)_mm256_madd_epi16((__m256i)a, (__m256i)b);
  }
  TACITURN_AVX2_INLINE Short low_pairs(Short a, Short b) {
    return (Short)_mm256_unpacklo_epi16((__m256i)a, (__m256i)b);
  }
  TACITURN_AVX2_INLINE Short high_pairs(Short a, Short b) {
    return (Short)_mm256_unpackhi_epi16((__m256i)a, (__m256i)b);
  }
  TACITURN_AVX2_INLINE bool any(Wide mask) { return !_mm256_testz_si256((__m256i)mask, (__m256i)mask); }
  TACITURN_AVX2_INLINE Wide sum_lanes(const Wide* p) {
    __m256i a[4], b[2];
    for (int i = 0; i < 4; ++i) {
      const auto x = (__m256i)p[2 * i], y = (__m256i)p[2 * i + 1];
      a[i] = _mm256_add_epi32(_mm256_unpacklo_epi32(x, y), _mm256_unpackhi_epi32(x, y));
    }
    for (int i = 0; i < 2; ++i) {
      b[i] = _mm256_add_epi32(_mm256_unpacklo_epi64(a[2 * i], a[2 * i + 1]),
                              _mm256_unpackhi_epi64(a[2 * i], a[2 * i + 1]));
    }
    return (Wide)_mm256_add_epi32(_mm256_permute2x128_si256(b[0], b[1], 0x20),
                                  _mm256_permute2x128_si256(b[0], b[1], 0x31));
  }
};
#endif

}  // namespace taciturn
