#include "whole_vectors.hpp"

#define TACITURN_TARGET
namespace taciturn {
namespace {
using Vectors = Vectors128;
}
}  // namespace taciturn
#include "error_sums_vectors.inc"

namespace taciturn {

void error_sums_portable(const ErrorPass& pass, const Axis& rows, const Axis& columns,
                         std::size_t begin, std::size_t end, const ErrorOutput& out) {
  run_pass(pass, rows, columns, begin, end, out);
}

}  // namespace taciturn
