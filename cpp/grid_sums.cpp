#include "grid_sums.hpp"

#include <algorithm>
#include <stdexcept>

namespace tacit {

void grid_sums(const std::int64_t* starts, const std::int32_t* columns, GridValues values,
               GridFeatures features, std::size_t begin, std::size_t end, std::int64_t* out) {
  const std::size_t width = features.width;
  for (std::size_t row = begin; row < end; ++row) {
    std::int64_t* sum = out + row * width;
    std::fill_n(sum, width, 0);
    for (std::int64_t entry = starts[row]; entry < starts[row + 1]; ++entry) {
      const auto column = static_cast<std::uint32_t>(columns[entry]);
      if (column >= features.rows) throw std::out_of_range("a column has no features");
      const std::int64_t value = std::clamp(values.data[entry], values.lowest, values.highest);
      const std::int32_t* feature = features.data + column * width;
      for (std::size_t k = 0; k < width; ++k) sum[k] += value * feature[k];
    }
  }
}

}  // namespace tacit
