#include "pack.hpp"

#include <algorithm>
#include <cmath>

namespace tacit {

namespace {

constexpr double rounder = 0x1.8p52;  // adding and subtracting it rounds to a whole number

constexpr double huge = 1e150;  // squares below do not overflow

bool fits(const std::int16_t* row, std::size_t width, std::int64_t norm) {
  std::int64_t squares = 0;
  for (std::size_t k = 0; k < width; ++k) squares += std::int32_t{row[k]} * row[k];
  return squares <= norm * norm;
}

}  // namespace

bool pack_rows(const double* features, std::size_t width, std::size_t stride, std::int32_t norm,
               std::size_t begin, std::size_t end, std::int16_t* out) {
  for (std::size_t row = begin; row < end; ++row) {
    const double* in = features + row * width;
    std::int16_t* packed = out + row * stride;
    std::fill(packed + width, packed + stride, std::int16_t{0});
    double squares = 0;
    for (std::size_t k = 0; k < width; ++k) squares += in[k] * in[k];
    double length = std::sqrt(squares);
    if (!(length < huge)) {  // also if not a number: look closer, relative to the largest entry
      double largest = 0;
      for (std::size_t k = 0; k < width; ++k) {
        if (!std::isfinite(in[k])) return false;
        largest = std::max(largest, std::abs(in[k]));
      }
      squares = 0;
      for (std::size_t k = 0; k < width; ++k) squares += (in[k] / largest) * (in[k] / largest);
      length = largest * std::sqrt(squares);
    }
    const double shrink = length > 1 ? 1 / length : 1;
    for (std::size_t k = 0; k < width; ++k) {
      const double steps = std::clamp(in[k] * shrink, -1.0, 1.0) * norm;
      packed[k] = static_cast<std::int16_t>(static_cast<std::int32_t>((steps + rounder) - rounder));
    }
    if (fits(packed, width, norm)) continue;
    for (std::size_t k = 0; k < width; ++k) {
      const double steps = std::clamp(in[k] * shrink, -1.0, 1.0) * norm * (1 - 0x1p-40);
      packed[k] = static_cast<std::int16_t>(steps);
    }
    if (!fits(packed, width, norm)) std::fill_n(packed, width, std::int16_t{0});
  }
  return true;
}

}  // namespace tacit
