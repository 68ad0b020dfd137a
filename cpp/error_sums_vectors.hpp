// Implementations of error_sums() for the instruction sets. All give identical sums.
#pragma once

#include <cstddef>

#include "error_sums.hpp"
#include "targets.hpp"

namespace taciturn {

void error_sums_portable(const ErrorPass& pass, const Axis& rows, const Axis& columns,
                         std::size_t begin, std::size_t end, const ErrorOutput& out);
#if defined(TACITURN_X86)
void error_sums_avx2(const ErrorPass& pass, const Axis& rows, const Axis& columns,
                     std::size_t begin, std::size_t end, const ErrorOutput& out);
void error_sums_avx512(const ErrorPass& pass, const Axis& rows, const Axis& columns,
                       std::size_t begin, std::size_t end, const ErrorOutput& out);
#endif

}  // namespace taciturn
