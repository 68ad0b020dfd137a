#include "error_sums.hpp"

#include <algorithm>

#include "error_sums_vectors.hpp"

namespace taciturn {

std::int64_t ErrorPass::largest() const noexcept {
  const auto unclipped = std::max(std::int64_t{ceiling} - lowest, std::int64_t{highest} - floor);
  return std::min(std::int64_t{threshold}, unclipped);
}

void error_sums(const ErrorPass& pass, const Axis& rows, const Axis& columns, std::size_t begin,
                std::size_t end, const ErrorOutput& out, InstructionSet set) {
#if defined(TACITURN_X86)
  if (set == InstructionSet::avx512) {
    return error_sums_avx512(pass, rows, columns, begin, end, out);
  }
  if (set == InstructionSet::avx2) return error_sums_avx2(pass, rows, columns, begin, end, out);
#endif
  static_cast<void>(set);
  error_sums_portable(pass, rows, columns, begin, end, out);
}

}  // namespace taciturn
