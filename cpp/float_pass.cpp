#include "float_pass.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "csr.hpp"
#include "lanes.hpp"
#include "targets.hpp"

namespace taciturn {

namespace {

constexpr std::size_t widest = 4;  // vectors of a row that are in registers at a time
constexpr std::size_t together_max = 64;
constexpr std::size_t cached = 4096;  // floats

template <std::size_t Count>
struct Integers {
  typedef std::int32_t Vector __attribute__((vector_size(Count * sizeof(std::int32_t))));
};

std::size_t lane_count(InstructionSet set) noexcept {
  return set == InstructionSet::avx512 ? 16 : set == InstructionSet::avx2 ? 8 : 4;
}

// Number of vectors of a row that are processed together: those that need the least padding.
std::size_t block_vectors(std::size_t vectors) noexcept {
  const auto padded = [&](std::size_t block) { return (vectors + block - 1) / block * block; };
  if (vectors <= widest) return vectors;
  return padded(3) < padded(widest) ? 3 : widest;
}

template <typename Vector>
inline __attribute__((always_inline)) void store(float* to, Vector vector) {
  std::memcpy(to, &vector, sizeof vector);
}

// Lanes without bit `Bit` are sums of two lanes of x, the others of two lanes of y.
template <std::size_t Bit, typename Vector, std::size_t... Lane>
inline __attribute__((always_inline)) Vector add_pairs(Vector x, Vector y,
                                                       std::index_sequence<Lane...>) {
  constexpr std::size_t count = sizeof...(Lane);
  return __builtin_shufflevector(x, y, (Lane & Bit ? count + Lane : Lane)...) +
         __builtin_shufflevector(x, y, (Lane & Bit ? count + (Lane ^ Bit) : Lane ^ Bit)...);
}

// Lane i of the result is the sum over the lanes of p[i].
template <std::size_t Count, std::size_t Bit = 1, typename Vector>
inline __attribute__((always_inline)) Vector sum_lanes(Vector* p) {
  if constexpr (Bit == Count) {
    return p[0];
  } else {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < Count / Bit / 2; ++i) {
      p[i] = add_pairs<Bit>(p[2 * i], p[2 * i + 1], std::make_index_sequence<Count>());
    }
    return sum_lanes<Count, 2 * Bit>(p);
  }
}

// Counterparts, whose rows have `Blocks` blocks of `Block` vectors; if `Blocks` is 0, their number is
// only known at run time.
template <std::size_t Count, std::size_t Block, std::size_t Blocks>
struct Counterparts {
  using Vector = typename Floats<Count>::Vector;
  static constexpr std::size_t step = Count * Block;

  const float* features;
  const float* scales;
  std::size_t stride;

  inline __attribute__((always_inline)) std::size_t width() const {
    return Blocks ? Blocks * step : stride;
  }

  inline __attribute__((always_inline)) const float* row(std::int32_t column) const {
    return features + static_cast<std::uint32_t>(column) * width();
  }

  // Clipped prediction errors of as many entries of a row as a vector has lanes. A comparison with
  // NaN is false, so that NaN is clipped too.
  inline __attribute__((always_inline)) void errors(const float* own, const std::int32_t* columns,
                                                    const std::int32_t* values, float step_size,
                                                    float limit, float* out) const {
    Vector products[Count] = {};
    for (std::size_t k = 0; k < width(); k += step) {
      Vector mine[Block];
      for (std::size_t b = 0; b < Block; ++b) mine[b] = load<Vector>(own + k + b * Count);
#pragma GCC unroll 16
      for (std::size_t i = 0; i < Count; ++i) {
        const float* other = row(columns[i]) + k;
#pragma GCC unroll 4
        for (std::size_t b = 0; b < Block; ++b) {
          products[i] += mine[b] * load<Vector>(other + b * Count);
        }
      }
    }
#pragma GCC unroll 16
    for (std::size_t i = 0; i < Count; ++i) {
      products[i] *= scales[static_cast<std::uint32_t>(columns[i])];
    }
    typename Integers<Count>::Vector steps;
    std::memcpy(&steps, values, sizeof steps);
    const Vector found =
        sum_lanes<Count>(products) - step_size * __builtin_convertvector(steps, Vector);
    const Vector high = Vector{} + limit;
    const Vector above = found > -high ? found : -high;
    store(out, above < high ? above : high);
  }

  // Adds error × feature of some entries to a block of sums that starts at column k. Two sums hide
  // the latency of additions.
  inline __attribute__((always_inline)) void add(const std::int32_t* columns, const float* errors,
                                                 std::size_t size, std::size_t k,
                                                 float* sums) const {
    Vector even[Block], odd[Block] = {};
    for (std::size_t b = 0; b < Block; ++b) even[b] = load<Vector>(sums + k + b * Count);
    std::size_t i = 0;
#pragma GCC unroll 2
    for (; i + 2 <= size; i += 2) {
      const float *one = row(columns[i]) + k, *two = row(columns[i + 1]) + k;
#pragma GCC unroll 4
      for (std::size_t b = 0; b < Block; ++b) {
        even[b] += errors[i] * load<Vector>(one + b * Count);
        odd[b] += errors[i + 1] * load<Vector>(two + b * Count);
      }
    }
    if (i < size) {
      const float* one = row(columns[i]) + k;
      for (std::size_t b = 0; b < Block; ++b) even[b] += errors[i] * load<Vector>(one + b * Count);
    }
    for (std::size_t b = 0; b < Block; ++b) store(sums + k + b * Count, even[b] + odd[b]);
  }
};

struct alignas(64) Line {
  float lanes[16];
};

inline __attribute__((always_inline)) void check_columns(const std::int32_t* columns,
                                                         std::size_t size, std::size_t rows) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < size; ++i) {
    largest = std::max(largest, static_cast<std::uint32_t>(columns[i]));
  }
  if (size > 0 && largest >= rows) throw std::out_of_range("a column has no features");
}

template <std::size_t Count, std::size_t Block, std::size_t Blocks>
inline __attribute__((always_inline)) void run(const FloatPass& pass, const FloatAxis& rows,
                                               const FloatAxis& counterparts, std::size_t begin,
                                               std::size_t end, const FloatOutput& out) {
  constexpr double largest = 0x1p62;
  constexpr std::size_t step = Count * Block;
  const Counterparts<Count, Block, Blocks> others{counterparts.features, counterparts.scales,
                                                  pass.stride};
  // Entries whose features stay in the first-level cache between the two loops over them.
  const std::size_t together =
      std::clamp(cached / others.width() / Count * Count, Count, together_max);
  std::vector<Line> scratch(2 * (pass.stride / 16 + 1));
  float* const own = scratch[0].lanes;
  float* const sums = scratch[scratch.size() / 2].lanes;
  alignas(64) float errors[together_max];
  for (std::size_t row = begin; row < end; ++row) {
    const std::int64_t first = pass.starts[row], last = pass.starts[row + 1];
    check_columns(pass.columns + first, static_cast<std::size_t>(last - first), counterparts.rows);
    for (std::size_t k = 0; k < others.width(); ++k) {
      own[k] = rows.features[row * others.width() + k] * rows.scales[row];
      sums[k] = 0;
    }
    double squares = 0;
    std::size_t size = 0;
    for (std::int64_t entry = first; entry < last; entry += static_cast<std::int64_t>(size)) {
      size = std::min(together, static_cast<std::size_t>(last - entry));
      const std::int32_t *columns = pass.columns + entry, *values = pass.values + entry;
      std::size_t i = 0;
      for (; i + Count <= size; i += Count) {
        others.errors(own, columns + i, values + i, pass.step, pass.limit, errors + i);
      }
      if (i < size) {
        std::int32_t some_columns[Count] = {}, some_values[Count] = {};
        std::copy_n(columns + i, size - i, some_columns);
        std::copy_n(values + i, size - i, some_values);
        others.errors(own, some_columns, some_values, pass.step, pass.limit, errors + i);
      }
      float parts[8] = {};
      std::fill(errors + size, errors + (size + 7) / 8 * 8, 0.0f);
      for (i = 0; i < size; i += 8) {
        for (std::size_t p = 0; p < 8; ++p) parts[p] += errors[i + p] * errors[i + p];
      }
      for (const float part : parts) squares += part;
      for (std::size_t k = 0; k < others.width(); k += step) {
        others.add(columns, errors, size, k, sums);
      }
    }
    out.squares[row] = squares;
    for (std::size_t k = 0; k < out.width; ++k) {
      const double steps = std::clamp(sums[k] * out.inverse_step, -largest, largest);
      out.sums[row * out.width + k] = static_cast<std::int64_t>(steps + std::copysign(0.5, steps));
    }
  }
}

template <std::size_t Count>
inline __attribute__((always_inline)) void dispatch(const FloatPass& pass, const FloatAxis& rows,
                                                    const FloatAxis& counterparts,
                                                    std::size_t begin, std::size_t end,
                                                    const FloatOutput& out) {
  switch (pass.stride / Count) {
    case 1: return run<Count, 1, 1>(pass, rows, counterparts, begin, end, out);
    case 2: return run<Count, 2, 1>(pass, rows, counterparts, begin, end, out);
    case 3: return run<Count, 3, 1>(pass, rows, counterparts, begin, end, out);
    case 4: return run<Count, 4, 1>(pass, rows, counterparts, begin, end, out);
    case 8: return run<Count, 4, 2>(pass, rows, counterparts, begin, end, out);
    default: break;
  }
  if (block_vectors(pass.stride / Count) == 3) {
    return run<Count, 3, 0>(pass, rows, counterparts, begin, end, out);
  }
  run<Count, widest, 0>(pass, rows, counterparts, begin, end, out);
}

inline __attribute__((always_inline)) bool features_of(const FloatRows& rows, std::size_t begin,
                                                       std::size_t end, float* features,
                                                       float* scales) {
  bool is_finite = true;
  for (std::size_t row = begin; row < end; ++row) {
    const double* in = rows.profiles + row * rows.width;
    float* out = features + row * rows.stride;
    double parts[8] = {};
    std::size_t k = 0;
    for (; k + 8 <= rows.width; k += 8) {
      for (std::size_t p = 0; p < 8; ++p) parts[p] += in[k + p] * in[k + p];
    }
    for (; k < rows.width; ++k) parts[k % 8] += in[k] * in[k];
    double square = 0;
    for (const double part : parts) square += part;
    const double scale = std::max(std::sqrt(square), rows.bound);
    const bool fits = scale < longest;
    is_finite &= fits;
    const double shrink = fits ? 1 / scale : 0;
    for (k = 0; k < rows.width; ++k) out[k] = fits ? static_cast<float>(in[k] * shrink) : 0.0f;
    std::fill(out + rows.width, out + rows.stride, 0.0f);
    scales[row] = fits ? static_cast<float>(scale) : 0.0f;
  }
  return is_finite;
}

#if defined(TACITURN_X86)
TACITURN_AVX512_LOOPS void run_avx512(const FloatPass& pass, const FloatAxis& rows,
                                      const FloatAxis& counterparts, std::size_t begin,
                                      std::size_t end, const FloatOutput& out) {
  dispatch<16>(pass, rows, counterparts, begin, end, out);
}

TACITURN_AVX2_LOOPS void run_avx2(const FloatPass& pass, const FloatAxis& rows,
                                  const FloatAxis& counterparts, std::size_t begin,
                                  std::size_t end, const FloatOutput& out) {
  dispatch<8>(pass, rows, counterparts, begin, end, out);
}

TACITURN_AVX512_LOOPS bool features_avx512(const FloatRows& rows, std::size_t begin,
                                           std::size_t end, float* features, float* scales) {
  return features_of(rows, begin, end, features, scales);
}

TACITURN_AVX2_LOOPS bool features_avx2(const FloatRows& rows, std::size_t begin, std::size_t end,
                                       float* features, float* scales) {
  return features_of(rows, begin, end, features, scales);
}
#endif

}  // namespace

std::size_t float_stride(std::size_t width, InstructionSet set) noexcept {
  const std::size_t count = lane_count(set), vectors = (width + count - 1) / count;
  const std::size_t block = block_vectors(vectors);
  return (vectors + block - 1) / block * block * count;
}

void float_sums(const FloatPass& pass, const FloatAxis& rows, const FloatAxis& counterparts,
                std::size_t begin, std::size_t end, const FloatOutput& out, InstructionSet set) {
#if defined(TACITURN_X86)
  if (set == InstructionSet::avx512) return run_avx512(pass, rows, counterparts, begin, end, out);
  if (set == InstructionSet::avx2) return run_avx2(pass, rows, counterparts, begin, end, out);
#endif
  static_cast<void>(set);
  dispatch<4>(pass, rows, counterparts, begin, end, out);
}

bool float_rows(const FloatRows& rows, std::size_t begin, std::size_t end, float* features,
                float* scales, InstructionSet set) {
#if defined(TACITURN_X86)
  if (set == InstructionSet::avx512) return features_avx512(rows, begin, end, features, scales);
  if (set == InstructionSet::avx2) return features_avx2(rows, begin, end, features, scales);
#endif
  static_cast<void>(set);
  return features_of(rows, begin, end, features, scales);
}

}  // namespace taciturn
