// Vector of 16 floats.
#pragma once

#include <cstddef>
#include <cstring>

namespace taciturn {

constexpr std::size_t lanes = 16;

typedef float Lanes __attribute__((vector_size(lanes * sizeof(float))));

inline __attribute__((always_inline)) Lanes load(const float* from) {
  Lanes vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}

}  // namespace taciturn
