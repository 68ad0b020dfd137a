// Sums of value × feature over the ratings of each row, in exact integers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu.hpp"

namespace taciturn {

// One value for each entry. Values are clipped to [lowest, highest].
struct GridValues {
  const std::int32_t* data;
  std::int32_t lowest;
  std::int32_t highest;
};

// Table of features, with one row for each column index.
struct GridFeatures {
  const std::int32_t* data;
  std::size_t rows;
  std::size_t width;
};

// out[row] = Σ values[e] · features[columns[e]] over the entries e of each row in [begin, end).
// Integer sums do not depend on their order, so the result depends neither on the instruction set nor
// on how rows are divided among threads or machines. The caller must exclude overflow. Throws if a
// column index is out of range.
void grid_sums(const std::int64_t* starts, const std::int32_t* columns, GridValues values,
               GridFeatures features, std::size_t begin, std::size_t end, std::int64_t* out,
               InstructionSet set);

}  // namespace taciturn
