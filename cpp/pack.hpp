// Feature rows on the grid of the error pass.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu.hpp"

namespace taciturn {

// Rows of `width` numbers times a factor for each row, rounded to whole numbers of 1/norm.
//
// A row longer than 1 is scaled down to 1. Every row that comes out has a norm of at most `norm`
// steps, in exact integers; if rounding made it longer, it is rounded towards zero instead. The
// columns from `width` to `stride` become zero. Returns whether every row had a finite length.
bool pack_rows(const double* features, const double* factors, std::size_t width,
               std::size_t stride, std::int32_t norm, std::size_t begin, std::size_t end,
               std::int16_t* out, InstructionSet set);

}  // namespace taciturn
