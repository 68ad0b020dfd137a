// The pass of residual_sums() in AVX-512 instructions.
#pragma once

#include <cstddef>

#include "residual_sums.hpp"

namespace taciturn {

#if defined(__x86_64__)
// Same result as the portable pass, bit for bit.
void residual_sums_avx512(const Residuals& pass, const Side& rows, const Side& columns,
                          std::size_t begin, std::size_t end, const ResidualOutput& out);
#endif

}  // namespace taciturn
