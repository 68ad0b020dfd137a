// AVX-512 implementation of error_sums().
#pragma once

#include <cstddef>

#include "error_sums.hpp"

namespace taciturn {

#if defined(__x86_64__)
// Bit-identical to the portable pass.
void error_sums_avx512(const ErrorPass& pass, const Axis& rows, const Axis& columns,
                          std::size_t begin, std::size_t end, const ErrorOutput& out);
#endif

}  // namespace taciturn
