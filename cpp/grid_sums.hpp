// Sums of value × feature over the ratings of each row, in exact integers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu.hpp"

namespace taciturn {

// The values of one table entry each; a value outside [lowest, highest] counts as the nearer end.
struct GridValues {
  const std::int32_t* data;
  std::int32_t lowest;
  std::int32_t highest;
};

// A table of features, one row for each column index.
struct GridFeatures {
  const std::int32_t* data;
  std::size_t rows;
  std::size_t width;
};

// out[row] = Σ values[e] · features[columns[e]] over the entries e of each row in [begin, end).
// Integer sums do not depend on their order, so any division of the rows among threads or machines
// gives the same result, and so does any instruction set.
// The caller has excluded overflow; a column without features throws.
void grid_sums(const std::int64_t* starts, const std::int32_t* columns, GridValues values,
               GridFeatures features, std::size_t begin, std::size_t end, std::int64_t* out,
               InstructionSet set);

}  // namespace taciturn
