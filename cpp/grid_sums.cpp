#include "grid_sums.hpp"

#include <algorithm>

#include "targets.hpp"
#include "csr.hpp"

namespace taciturn {

namespace {

inline __attribute__((always_inline)) void run(const std::int64_t* starts,
                                               const std::int32_t* columns, GridValues values,
                                               GridFeatures features, std::size_t begin,
                                               std::size_t end, std::int64_t* out) {
  const std::size_t width = features.width;
  for (std::size_t row = begin; row < end; ++row) {
    std::int64_t* __restrict sum = out + row * width;
    std::fill_n(sum, width, 0);
    for (std::int64_t entry = starts[row]; entry < starts[row + 1]; ++entry) {
      const std::uint32_t column = checked_column(columns[entry], features.rows);
      const std::int32_t value = std::clamp(values.data[entry], values.lowest, values.highest);
      const std::int32_t* feature = features.data + column * width;
      for (std::size_t k = 0; k < width; ++k) sum[k] += std::int64_t{value} * feature[k];
    }
  }
}

#if defined(TACITURN_X86)
TACITURN_AVX512_LOOPS void run_avx512(const std::int64_t* starts, const std::int32_t* columns,
                                      GridValues values, GridFeatures features, std::size_t begin,
                                      std::size_t end, std::int64_t* out) {
  run(starts, columns, values, features, begin, end, out);
}

TACITURN_AVX2_LOOPS void run_avx2(const std::int64_t* starts, const std::int32_t* columns,
                                      GridValues values, GridFeatures features, std::size_t begin,
                                      std::size_t end, std::int64_t* out) {
  run(starts, columns, values, features, begin, end, out);
}
#endif

}  // namespace

void grid_sums(const std::int64_t* starts, const std::int32_t* columns, GridValues values,
               GridFeatures features, std::size_t begin, std::size_t end, std::int64_t* out,
               InstructionSet set) {
#if defined(TACITURN_X86)
  if (set == InstructionSet::avx512) {
    return run_avx512(starts, columns, values, features, begin, end, out);
  }
  if (set == InstructionSet::avx2) {
    return run_avx2(starts, columns, values, features, begin, end, out);
  }
#endif
  static_cast<void>(set);
  run(starts, columns, values, features, begin, end, out);
}

}  // namespace taciturn
