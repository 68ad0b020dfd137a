// Target attributes of functions for one instruction set. Call them only where instruction_set()
// returns it.
#pragma once

#if defined(__FAST_MATH__)
#error "exact kernels need IEEE arithmetic: compile without -ffast-math"
#endif

#if defined(TACITURN_EMULATED)
// Tests on any processor: vector instructions are functions (tests/native/emulated.hpp).
#include "emulated.hpp"
#define TACITURN_X86
#define TACITURN_AVX512
#define TACITURN_AVX512_LOOPS
#define TACITURN_AVX2
#elif defined(__x86_64__)
#include <immintrin.h>
#define TACITURN_X86

// Functions written in intrinsics: all extensions that supported_instruction_sets() checks for.
#define TACITURN_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vnni")))
#define TACITURN_AVX2 __attribute__((target("avx2,fma")))

// Portable loops that the compiler vectorizes with registers of 512 bits.
#define TACITURN_AVX512_LOOPS \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")))
#endif

// Portable loops that the compiler vectorizes with registers of 256 bits.
#define TACITURN_AVX2_LOOPS TACITURN_AVX2
