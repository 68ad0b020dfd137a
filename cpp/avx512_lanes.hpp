// Moves 32-bit sums out of AVX-512 registers.
#pragma once

#include "targets.hpp"

#if defined(TACITURN_X86)
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace taciturn {

// Adds the first min(16, `width`) of 16 sums to 64-bit sums.
TACITURN_AVX512 inline void spill(__m512i sums, std::size_t width, std::int64_t* out) {
  const __m256i halves[2] = {_mm512_castsi512_si256(sums), _mm512_extracti64x4_epi64(sums, 1)};
  width = std::min<std::size_t>(16, width);
  for (std::size_t k = 0; k < width; k += 8, out += 8) {
    const auto there = static_cast<__mmask8>((1u << std::min<std::size_t>(8, width - k)) - 1);
    const __m512i sum = _mm512_maskz_loadu_epi64(there, out);
    const __m512i more = _mm512_cvtepi32_epi64(halves[k / 8]);
    _mm512_mask_storeu_epi64(out, there, _mm512_add_epi64(sum, more));
  }
}

// Adds sums of unpacked vectors to 64-bit sums, in column order. Unpacking two vectors puts column
// 8q + w into lane 4q + w of `low`, and column 8q + 4 + w into lane 4q + w of `high`.
TACITURN_AVX512 inline void spill_unpacked(__m512i low, __m512i high, std::size_t width,
                                           std::int64_t* out) {
  const __m512i front = _mm512_set_epi32(23, 22, 21, 20, 7, 6, 5, 4, 19, 18, 17, 16, 3, 2, 1, 0);
  const __m512i back = _mm512_add_epi32(front, _mm512_set1_epi32(8));
  spill(_mm512_permutex2var_epi32(low, front, high), width, out);
  if (width > 16) spill(_mm512_permutex2var_epi32(low, back, high), width - 16, out + 16);
}

// Sums over the lanes of each of 16 vectors: lane i is the sum of p[i].
TACITURN_AVX512 inline __m512i sum_lanes(const __m512i* p) {
  __m512i a[8], b[4];
  for (int i = 0; i < 8; ++i) {
    a[i] = _mm512_add_epi32(_mm512_unpacklo_epi32(p[2 * i], p[2 * i + 1]),
                            _mm512_unpackhi_epi32(p[2 * i], p[2 * i + 1]));
  }
  for (int i = 0; i < 4; ++i) {
    b[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(a[2 * i], a[2 * i + 1]),
                            _mm512_unpackhi_epi64(a[2 * i], a[2 * i + 1]));
  }
  const __m512i c = _mm512_add_epi32(_mm512_shuffle_i32x4(b[0], b[1], 0x88),
                                     _mm512_shuffle_i32x4(b[0], b[1], 0xdd));
  const __m512i d = _mm512_add_epi32(_mm512_shuffle_i32x4(b[2], b[3], 0x88),
                                     _mm512_shuffle_i32x4(b[2], b[3], 0xdd));
  return _mm512_add_epi32(_mm512_shuffle_i32x4(c, d, 0x88), _mm512_shuffle_i32x4(c, d, 0xdd));
}
}  // namespace taciturn
#endif
