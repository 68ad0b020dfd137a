// Vectors of floats.
#pragma once

#include <cstddef>
#include <cstring>

namespace taciturn {

template <std::size_t Count>
struct Floats {
  typedef float Vector __attribute__((vector_size(Count * sizeof(float))));
};

// Floats of a stored group of items.
constexpr std::size_t lanes = 16;
using Lanes = Floats<lanes>::Vector;

template <typename Vector>
inline __attribute__((always_inline)) Vector load(const float* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}

inline __attribute__((always_inline)) Lanes load(const float* from) { return load<Lanes>(from); }

}  // namespace taciturn
