// The pass of error_sums() in AVX-512 instructions.
#pragma once

#include <cstddef>

#include "error_sums.hpp"

namespace taciturn {

#if defined(__x86_64__)
// Same result as the portable pass, bit for bit.
void error_sums_avx512(const ErrorPass& pass, const Side& rows, const Side& columns,
                          std::size_t begin, std::size_t end, const ErrorOutput& out);
#endif

}  // namespace taciturn
