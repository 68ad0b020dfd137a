// Exact top-k items of each user.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu.hpp"

namespace taciturn {

// score = bias + Σ_k user[k] · item[k], summed in this order in floats.
//
// Items come in groups of 16: factors[group, k, lane] and biases[group, lane]. Unused lanes of the
// last group have a bias of −∞, which is never recommended.
struct Catalogue {
  const float* factors;
  const float* biases;
  std::size_t groups;
  std::size_t width;

  static constexpr std::size_t lanes = 16;
};

// Items to exclude for each user: columns[starts[u]..starts[u + 1]) for user u, ascending.
struct Excluded {
  const std::int64_t* starts;
  const std::int32_t* columns;
};

// For users in [begin, end): the `count` items with the highest scores, best first; the lower index wins
// a tie. Missing items have index −1 and score −∞. Throws if excluded columns are out of range or not
// ascending.
void top_k(const Catalogue& catalogue, const float* users, const Excluded& excluded,
           std::size_t begin, std::size_t end, std::size_t count, std::int32_t* items,
           float* scores, InstructionSet set);

}  // namespace taciturn
