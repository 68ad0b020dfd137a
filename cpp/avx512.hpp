// Target attributes for functions compiled to AVX-512; call them only where
// best_instruction_set() returns InstructionSet::avx512.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>

// Functions written in intrinsics: all extensions that best_instruction_set() checks for.
#define TACITURN_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vnni")))

// Portable loops that the compiler vectorizes with 512-bit registers.
#define TACITURN_AVX512_LOOPS \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")))
#endif
