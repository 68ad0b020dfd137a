// Exact best items for each user.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu.hpp"

namespace taciturn {

// score = bias + Σ_k user[k] · item[k], summed in this order in floats.
//
// Items come in groups of 16: factors[group, k, lane] and biases[group, lane]. The lanes of the last
// group that stand for no item have a bias of −∞, which is never recommended.
struct Catalogue {
  const float* factors;
  const float* biases;
  std::size_t groups;
  std::size_t width;

  static constexpr std::size_t lanes = 16;
};

// Items that a user is not to get: those of row u are columns[starts[u]..starts[u + 1]), rising.
struct Excluded {
  const std::int64_t* starts;
  const std::int32_t* columns;
};

// For users in [begin, end): the `count` items of the highest score, best first, ties by the lower
// index; where there are fewer, index −1 and score −∞. Excluded columns that are out of range or do
// not rise throw.
void top_k(const Catalogue& catalogue, const float* users, const Excluded& excluded,
           std::size_t begin, std::size_t end, std::size_t count, std::int32_t* items,
           float* scores, InstructionSet set);

}  // namespace taciturn
