// Exact top-k items of each user.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu.hpp"

namespace taciturn {

// Rows of `width` floats. A row starts `stride` floats after the one before.
struct RowsOfFloats {
  const float* first;
  std::size_t stride;
  std::size_t width;

  const float* row(std::size_t number) const { return first + number * stride; }
};

// score = bias + Σ_k user[k] · item[k], summed in this order in floats. An item's vector is its
// interests, then its factors times `weight`. Both stay in the arrays of the profiles: a part of them at
// a time is copied into the layout that the kernel needs.
struct Catalogue {
  RowsOfFloats interests;
  RowsOfFloats factors;
  float weight;
  const float* biases;
  std::size_t items;

  std::size_t width() const { return interests.width + factors.width; }
};

// Items to exclude for each user: columns[starts[u]..starts[u + 1]) for user u, ascending.
struct Excluded {
  const std::int64_t* starts;
  const std::int32_t* columns;
};

// The `count` best items of each user, and their scores.
struct Lists {
  std::size_t count;
  std::int32_t* items;
  float* scores;
};

// For users in [begin, end): the items with the highest scores, best first; the lower index wins a tie.
// Missing items have index −1 and score −∞. A list does not depend on the other users. Throws if
// excluded columns are out of range or not ascending.
void top_k(const Catalogue& catalogue, const float* users, const Excluded& excluded,
           std::size_t begin, std::size_t end, const Lists& lists, InstructionSet set);

}  // namespace taciturn
