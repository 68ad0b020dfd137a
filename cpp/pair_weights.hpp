// Weights of the terms of a rating, by the classes of its row and column.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace taciturn {

struct PairWeights {
  static constexpr std::size_t classes = 64;
  static constexpr int bits = 14;
  static constexpr std::int32_t one = 1 << bits;  // largest weight

  // One line of weights, by class of the column, for each class of a row.
  using Table = std::array<std::int16_t, classes * classes>;

  const std::uint8_t* rows;     // class of each row
  const std::uint8_t* columns;  // class of each column
  alignas(64) Table of_rows;     // for terms in the sums of rows
  alignas(64) Table of_columns;  // for terms in the sums of columns
};

// error × weight / 2^bits, rounded to the nearest integer and ties away from zero. Its absolute
// value never exceeds that of the error.
inline std::int32_t weighted_error(std::int32_t error, std::int32_t weight) {
  const std::int32_t size =
      (std::abs(error) * weight + PairWeights::one / 2) >> PairWeights::bits;
  return error < 0 ? -size : size;
}

}  // namespace taciturn
