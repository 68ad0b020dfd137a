#include "whole_vectors.hpp"

#if defined(TACITURN_X86)
#define TACITURN_TARGET TACITURN_AVX2
namespace taciturn {
namespace {
using Vectors = Vectors256;
}
}  // namespace taciturn
#include "error_sums_vectors.inc"

namespace taciturn {

void error_sums_avx2(const ErrorPass& pass, const Axis& rows, const Axis& columns,
                     std::size_t begin, std::size_t end, const ErrorOutput& out) {
  run_pass(pass, rows, columns, begin, end, out);
}

}  // namespace taciturn
#endif
