// Rounds feature rows to the grid of the error pass.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu.hpp"

namespace taciturn {

// Multiplies each row of `width` numbers by its factor and rounds it to multiples of 1/norm.
//
// A row whose norm exceeds 1 is scaled down to norm 1. The norm of every output row is at most `norm`
// steps, in exact integers: if rounding to nearest exceeds it, the row is rounded towards zero instead.
// The columns from `width` to `stride` become zero. Returns false if a row's norm is not finite.
bool pack_rows(const double* features, const double* factors, std::size_t width,
               std::size_t stride, std::int32_t norm, std::size_t begin, std::size_t end,
               std::int16_t* out, InstructionSet set);

}  // namespace taciturn
