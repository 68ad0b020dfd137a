// The vector instructions of x86-64 as functions that any compiler and processor can run: SIMDe, and what
// it lacks. Included by cpp/targets.hpp where TACITURN_EMULATED is defined.
#pragma once

#define SIMDE_NO_NATIVE
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

#include "missing_intrinsics.hpp"

// Masks, and an alias that this SIMDe defines with a wrong number of parameters.
using __mmask8 = std::uint8_t;
using __mmask16 = std::uint16_t;
using __mmask32 = std::uint32_t;
#undef _mm512_madd_epi16
#define _mm512_madd_epi16(a, b) simde_mm512_madd_epi16(a, b)

#define _mm512_alignr_epi32(a, b, shift) test::missing::alignr_epi32(a, b, shift)
#define _mm512_cvtepi32_epi64(a) \
  (test::missing::converted<std::int64_t, std::int32_t, 8, simde__m512i>(a))
#define _mm512_cvtepu32_epi64(a) \
  (test::missing::converted<std::int64_t, std::uint32_t, 8, simde__m512i>(a))
#define _mm512_cvtepu16_epi32(a) \
  (test::missing::converted<std::int32_t, std::uint16_t, 16, simde__m512i>(a))
#define _mm512_cvtepu8_epi32(a) \
  (test::missing::converted<std::int32_t, std::uint8_t, 16, simde__m512i>(a))
#define _mm512_cvtepi32_ps(a) \
  (test::missing::converted<float, std::int32_t, 16, simde__m512>(a))
#define _mm512_cvtps_epi32(a) test::missing::cvtps_epi32<simde__m512i>(a)
#define _mm512_i64gather_epi64(index, base, scale) \
  test::missing::i64gather_epi64(index, base, scale)
#define _mm512_madd52lo_epu64(sum, a, b) test::missing::madd52(sum, a, b, false)
#define _mm512_madd52hi_epu64(sum, a, b) test::missing::madd52(sum, a, b, true)
#define _mm512_mask_storeu_epi32(to, mask, a) \
  (test::missing::mask_store<std::int32_t, 16>(to, mask, a))
#define _mm512_mask_storeu_epi64(to, mask, a) \
  (test::missing::mask_store<std::int64_t, 8>(to, mask, a))
#define _mm512_maskz_loadu_epi32(mask, from) \
  (test::missing::mask_load<std::int32_t, 16, simde__m512i>(mask, from))
#define _mm512_maskz_loadu_epi64(mask, from) \
  (test::missing::mask_load<std::int64_t, 8, simde__m512i>(mask, from))
#define _mm512_reduce_add_epi64(a) test::missing::reduce_add_epi64(a)
