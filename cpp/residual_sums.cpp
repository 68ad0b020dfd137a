#include "residual_sums.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace taciturn {

namespace {

// Adding and subtracting this rounds a float below 2^22 to a whole number, ties to even.
constexpr float rounder = 0x1.8p23f;

// The prediction of a rating minus its value; one that is not a number counts as the floor.
inline std::int32_t residual(const Residuals& pass, float prediction, std::int32_t value) {
  const auto floor = static_cast<float>(pass.floor), ceiling = static_cast<float>(pass.ceiling);
  const float raised = prediction > floor ? prediction : floor;
  const float inside = raised < ceiling ? raised : ceiling;
  const float rounded = (inside + rounder) - rounder;
  const auto whole = static_cast<std::int32_t>(rounded);
  return std::clamp(whole - std::clamp(value, pass.lowest, pass.highest), -pass.limit, pass.limit);
}

// The prediction of a rating, in steps of the grid of values; the sum of 16-bit products is exact.
inline float prediction(const Residuals& pass, const Side& rows, std::size_t row,
                        const Side& columns, std::size_t column, std::size_t width) {
  const std::int16_t* own = rows.features + row * pass.stride;
  const std::int16_t* other = columns.features + column * pass.stride;
  std::int32_t product = 0;
  for (std::size_t k = pass.first; k < width; ++k) product += own[k] * other[k];
  const float *first = rows.lines + 2 * row, *second = columns.lines + 2 * column;
  return (first[0] + second[0]) + (first[1] * second[1]) * static_cast<float>(product);
}

// Add residual times feature to the sums of a row and of a column.
inline void add_one(std::int32_t r, const std::int16_t* own, const std::int16_t* other,
                    std::size_t width, std::int64_t* row_sum, std::int64_t* column_sum) {
  for (std::size_t k = 0; k < width; ++k) {
    row_sum[k] += std::int64_t{r} * other[k];
    column_sum[k] += std::int64_t{r} * own[k];
  }
}

void check_columns(std::uint32_t largest, const Side& columns) {
  if (largest >= columns.rows) throw std::out_of_range("a column has no features");
}

void pass_portable(const Residuals& pass, const Side& rows, const Side& columns, std::size_t begin,
                   std::size_t end, const ResidualOutput& out) {
  const std::size_t width = out.width;
  for (std::size_t row = begin; row < end; ++row) {
    const std::int16_t* own = rows.features + row * pass.stride;
    std::int64_t* row_sum = out.row_sums + row * width;
    std::fill_n(row_sum, width, 0);
    std::int64_t squares = 0;
    for (std::int64_t entry = pass.starts[row]; entry < pass.starts[row + 1]; ++entry) {
      const auto column = static_cast<std::uint32_t>(pass.columns[entry]);
      check_columns(column, columns);
      const std::int16_t* other = columns.features + column * pass.stride;
      const float predicted = prediction(pass, rows, row, columns, column, width);
      const std::int32_t r = residual(pass, predicted, pass.values[entry]);
      squares += std::int64_t{r} * r;
      add_one(r, own, other, width, row_sum, out.column_sums + column * width);
    }
    out.squares[row] = squares;
  }
}

#if defined(__x86_64__)

#define TACITURN_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vnni")))

constexpr std::size_t lanes = 32;  // 16-bit features in a vector
constexpr int batch = 16;          // ratings of a row that are worked on together

// 32-bit sums, all zero; a thread keeps those of a small pass for the next, fresh memory is slow.
class Sums {
 public:
  explicit Sums(std::size_t size) {
    thread_local Memory kept;
    thread_local std::size_t room = 0;
    if (size > kept_max) {
      own_ = zeroed(size);
      data = own_.get();
      return;
    }
    if (size > room) {
      room = 0;
      kept = zeroed(size);
      room = size;
    }
    data = kept.get();
  }

  std::int32_t* data;

 private:
  struct Free {
    void operator()(std::int32_t* memory) const { ::operator delete(memory, alignment); }
  };
  using Memory = std::unique_ptr<std::int32_t, Free>;
  static constexpr std::align_val_t alignment{64};
  static constexpr std::size_t kept_max = std::size_t{1} << 22;

  static Memory zeroed(std::size_t size) {
    Memory memory(static_cast<std::int32_t*>(::operator new(size * sizeof(std::int32_t), alignment)));
    std::fill_n(memory.get(), size, 0);
    return memory;
  }

  Memory own_;
};

// Adds the first `width` of 16 sums, or all, to 64-bit sums.
TACITURN_AVX512 inline void spill(__m512i sums, std::size_t width, std::int64_t* out) {
  const __m256i halves[2] = {_mm512_castsi512_si256(sums), _mm512_extracti64x4_epi64(sums, 1)};
  width = std::min<std::size_t>(16, width);
  for (std::size_t k = 0; k < width; k += 8, out += 8) {
    const auto there = static_cast<__mmask8>((1u << std::min<std::size_t>(8, width - k)) - 1);
    const __m512i sum = _mm512_maskz_loadu_epi64(there, out);
    const __m512i more = _mm512_cvtepi32_epi64(halves[k / 8]);
    _mm512_mask_storeu_epi64(out, there, _mm512_add_epi64(sum, more));
  }
}

// Unpacking the halves of two vectors puts column 8q + w at lane 4q + w of the low sums and column
// 8q + 4 + w at the same lane of the high ones. Adds such sums in the order of columns.
TACITURN_AVX512 inline void spill_unpacked(__m512i low, __m512i high, std::size_t width,
                                        std::int64_t* out) {
  const __m512i front = _mm512_set_epi32(23, 22, 21, 20, 7, 6, 5, 4, 19, 18, 17, 16, 3, 2, 1, 0);
  const __m512i back = _mm512_add_epi32(front, _mm512_set1_epi32(8));
  spill(_mm512_permutex2var_epi32(low, front, high), width, out);
  if (width > 16) spill(_mm512_permutex2var_epi32(low, back, high), width - 16, out + 16);
}

// The sums over the lanes of each of 16 vectors.
TACITURN_AVX512 inline __m512i sum_lanes(const __m512i* p) {
  __m512i a[8], b[4];
  for (int i = 0; i < 8; ++i) {
    a[i] = _mm512_add_epi32(_mm512_unpacklo_epi32(p[2 * i], p[2 * i + 1]),
                            _mm512_unpackhi_epi32(p[2 * i], p[2 * i + 1]));
  }
  for (int i = 0; i < 4; ++i) {
    b[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(a[2 * i], a[2 * i + 1]),
                            _mm512_unpackhi_epi64(a[2 * i], a[2 * i + 1]));
  }
  const __m512i c = _mm512_add_epi32(_mm512_shuffle_i32x4(b[0], b[1], 0x88),
                                     _mm512_shuffle_i32x4(b[0], b[1], 0xdd));
  const __m512i d = _mm512_add_epi32(_mm512_shuffle_i32x4(b[2], b[3], 0x88),
                                     _mm512_shuffle_i32x4(b[2], b[3], 0xdd));
  return _mm512_add_epi32(_mm512_shuffle_i32x4(c, d, 0x88), _mm512_shuffle_i32x4(c, d, 0xdd));
}

// What a pass over some rows needs. N is the number of vectors in a row of features, 0 if known only
// here. The sums of a column are kept by 16, two vectors for one of features, but for the end of the
// last: of its upper half only the first `Tail` (0, 4, 8 or 16) are sums, and a short tail is kept
// apart, where more columns share a cache line.
template <int N, int Tail>
struct Pass {
  const Residuals& pass;
  const Side& rows;
  const Side& columns;
  const ResidualOutput& out;
  static constexpr std::size_t short_tail = Tail % 16;
  Sums kept{columns.rows * (16 * halves() + short_tail)};  // every pass clears what it adds
  std::int32_t* const column_sums = kept.data;
  std::int32_t* const tails = column_sums + columns.rows * 16 * halves();
  const std::int16_t* const all_features = columns.features;
  const float* const all_lines = columns.lines;
  // Residuals beyond are rare, whatever is allowed, and added apart.
  const std::int32_t usual = static_cast<std::int32_t>(std::min<std::int64_t>(
      pass.largest(), std::max(255, pass.highest - pass.lowest)));
  static constexpr int room = N ? N : Residuals::stride_max / lanes;

  std::size_t count() const { return N ? N : pass.stride / lanes; }
  std::size_t halves() const { return 2 * count() - (Tail < 16); }

  // A row's features, each in the low half of 32 bits, by 16.
  struct Own {
    alignas(64) __m512i part[2 * room];
  };

  // Up to 16 ratings of a row.
  struct Batch {
    const std::int32_t* columns;
    int size;
    alignas(64) std::int32_t residuals[batch];  // in the low half; that of the next in the high
  };

  // Ratings [entry, stop) of a row; so few that no sum leaves 32 bits.
  TACITURN_AVX512 void segment(std::size_t row, std::int64_t entry, std::int64_t stop) {
    const std::size_t stride = count() * lanes;
    const std::int16_t* features = rows.features + row * stride;
    const __m512i zero = _mm512_setzero_si512();
    alignas(64) __m512i own[room], sum_low[room], sum_high[room];
    Own split;
    for (std::size_t n = 0; n < count(); ++n) {
      own[n] = _mm512_loadu_si512(features + lanes * n);
      split.part[2 * n] = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(own[n]));
      split.part[2 * n + 1] = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(own[n], 1));
      sum_low[n] = sum_high[n] = zero;
    }
    own[0] = _mm512_maskz_mov_epi16(static_cast<__mmask32>(~((1ull << pass.first) - 1)), own[0]);
    __m512i squares = zero, largest = zero;
    // The residuals of a batch take long to arrive: the next batch is begun before one is added.
    Batch batches[2];
    const std::int64_t begin = entry;
    measure(batches[0], row, own, entry, stop, squares, largest);
    for (int now = 0; entry < stop; now = 1 - now) {
      entry += batch;
      if (entry < stop) measure(batches[1 - now], row, own, entry, stop, squares, largest);
      add(batches[now], split, sum_low, sum_high);
    }
    for (std::size_t n = 0; n < count(); ++n) {
      spill_unpacked(sum_low[n], sum_high[n], std::min(lanes, out.width - n * lanes),
                     out.row_sums + row * out.width + n * lanes);
    }
    out.squares[row] += _mm512_reduce_add_epi64(
        _mm512_add_epi64(_mm512_cvtepu32_epi64(_mm512_castsi512_si256(squares)),
                         _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(squares, 1))));
    if (_mm512_reduce_max_epi32(largest) > usual) [[unlikely]] add_far(row, begin, stop);
  }

  // The residuals of up to 16 ratings from `entry` on.
  TACITURN_AVX512 inline __attribute__((always_inline)) void measure(Batch& now, std::size_t row,
                                                                 const __m512i* own,
                                                                 std::int64_t entry,
                                                                 std::int64_t stop,
                                                                 __m512i& squares,
                                                                 __m512i& largest) const {
    const std::size_t stride = count() * lanes;
    now.columns = pass.columns + entry;
    now.size = static_cast<int>(std::min<std::int64_t>(batch, stop - entry));
    alignas(64) double lines[batch];  // base and scale of each column, as two floats
    __m512i products[batch];
    if (now.size == batch) {
#pragma GCC unroll 16
      for (int i = 0; i < batch; ++i) {
        const std::size_t column = static_cast<std::uint32_t>(now.columns[i]);
        std::memcpy(lines + i, all_lines + 2 * column, sizeof(double));
        products[i] = product(own, all_features + column * stride);
      }
    } else {
      for (int i = 0; i < batch; ++i) {
        const auto column = static_cast<std::size_t>(now.columns[std::min(i, now.size - 1)]);
        std::memcpy(lines + i, columns.lines + 2 * column, sizeof(double));
        products[i] = product(own, columns.features + column * stride);
      }
    }
    const __m512i all = residuals(row, entry, now.size, lines, sum_lanes(products));
    const __m512i size = _mm512_abs_epi32(all);
    const __m512i r =
        _mm512_maskz_mov_epi32(_mm512_cmple_epi32_mask(size, _mm512_set1_epi32(usual)), all);
    largest = _mm512_max_epi32(largest, size);
    const __m512i next = _mm512_alignr_epi32(_mm512_setzero_si512(), r, 1);
    const __m512i low = _mm512_and_si512(r, _mm512_set1_epi32(0xffff));
    squares = _mm512_dpwssd_epi32(squares, low, low);
    _mm512_store_si512(now.residuals, _mm512_or_si512(low, _mm512_slli_epi32(next, 16)));
  }

  // Add the rare residuals of ratings [entry, stop) that 32-bit sums leave out.
  __attribute__((noinline)) void add_far(std::size_t row, std::int64_t entry,
                                         std::int64_t stop) const {
    const std::int16_t* own = rows.features + row * pass.stride;
    std::int64_t* row_sum = out.row_sums + row * out.width;
    for (; entry < stop; ++entry) {
      const auto column = static_cast<std::size_t>(pass.columns[entry]);
      const std::int16_t* other = columns.features + column * pass.stride;
      const std::int32_t r =
          residual(pass, prediction(pass, rows, row, columns, column, out.width), pass.values[entry]);
      if (std::abs(r) <= usual) continue;
      add_one(r, own, other, out.width, row_sum, out.column_sums + column * out.width);
      out.squares[row] += std::int64_t{r} * r;
    }
  }

  // Add residual times feature to the sums of the row and of the columns.
  TACITURN_AVX512 inline __attribute__((always_inline)) void add(const Batch& now, const Own& own,
                                                             __m512i* sum_low, __m512i* sum_high) {
    if (now.size == batch) {
#pragma GCC unroll 8
      for (int i = 0; i < batch; i += 2) add_pair(now, i, i + 1, own, sum_low, sum_high);
      return;
    }
    for (int i = 0; i < now.size; i += 2) {
      // The last of an odd number stands beside itself, with a residual of zero.
      add_pair(now, i, std::min(i + 1, now.size - 1), own, sum_low, sum_high);
    }
  }

  TACITURN_AVX512 inline __attribute__((always_inline)) void add_pair(const Batch& now, int i, int j,
                                                                  const Own& own,
                                                                  __m512i* sum_low,
                                                                  __m512i* sum_high) {
    const std::size_t stride = count() * lanes;
    const std::size_t column = static_cast<std::uint32_t>(now.columns[i]);
    const std::size_t beside = static_cast<std::uint32_t>(now.columns[j]);
    const std::int16_t* first = all_features + column * stride;
    const std::int16_t* second = all_features + beside * stride;
    const __m512i both = _mm512_set1_epi32(now.residuals[i]);
    for (std::size_t n = 0; n < count(); ++n) {
      const __m512i one = _mm512_loadu_si512(first + lanes * n);
      const __m512i two = _mm512_loadu_si512(second + lanes * n);
      sum_low[n] = _mm512_dpwssd_epi32(sum_low[n], both, _mm512_unpacklo_epi16(one, two));
      sum_high[n] = _mm512_dpwssd_epi32(sum_high[n], both, _mm512_unpackhi_epi16(one, two));
    }
    add_to(column, both, own);
    add_to(beside, _mm512_set1_epi32(now.residuals[i + 1]), own);
  }

  // The products of a row's features with another's, in 16 sums.
  TACITURN_AVX512 __m512i product(const __m512i* own, const std::int16_t* other) const {
    __m512i sum = _mm512_madd_epi16(own[0], _mm512_loadu_si512(other));
    for (std::size_t n = 1; n < count(); ++n) {
      sum = _mm512_dpwssd_epi32(sum, own[n], _mm512_loadu_si512(other + lanes * n));
    }
    return sum;
  }

  // Predictions minus values of `size` ratings; zero for those that are not there.
  TACITURN_AVX512 __m512i residuals(std::size_t row, std::int64_t entry, int size,
                                 const double* lines, __m512i products) const {
    const auto there = static_cast<__mmask16>((1u << size) - 1);
    const __m512 first = _mm512_load_ps(lines), last = _mm512_load_ps(lines + batch / 2);
    const __m512i evens = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i odds = _mm512_add_epi32(evens, _mm512_set1_epi32(1));
    const __m512 base = _mm512_permutex2var_ps(first, evens, last);
    const __m512 scale = _mm512_permutex2var_ps(first, odds, last);
    const __m512 prediction = _mm512_add_ps(
        _mm512_add_ps(_mm512_set1_ps(rows.lines[2 * row]), base),
        _mm512_mul_ps(_mm512_mul_ps(_mm512_set1_ps(rows.lines[2 * row + 1]), scale),
                      _mm512_cvtepi32_ps(products)));
    // If the prediction is not a number, the second operand is taken: the floor.
    const __m512 raised =
        _mm512_max_ps(prediction, _mm512_set1_ps(static_cast<float>(pass.floor)));
    const __m512 inside = _mm512_min_ps(raised, _mm512_set1_ps(static_cast<float>(pass.ceiling)));
    const __m512i value = _mm512_maskz_loadu_epi32(there, pass.values + entry);
    const __m512i cut = _mm512_min_epi32(_mm512_max_epi32(value, _mm512_set1_epi32(pass.lowest)),
                                         _mm512_set1_epi32(pass.highest));
    const __m512i all = _mm512_maskz_sub_epi32(there, _mm512_cvtps_epi32(inside), cut);
    return _mm512_min_epi32(_mm512_max_epi32(all, _mm512_set1_epi32(-pass.limit)),
                            _mm512_set1_epi32(pass.limit));
  }

  // Add a row's features times a residual to the sums of a column.
  TACITURN_AVX512 inline __attribute__((always_inline)) void add_to(std::size_t column,
                                                                __m512i residual,
                                                                const Own& own) const {
    std::int32_t* sum = column_sums + column * 16 * halves();
    for (std::size_t h = 0; h < halves(); ++h, sum += 16) {
      const __m512i now = _mm512_load_si512(sum);
      _mm512_store_si512(sum, _mm512_dpwssd_epi32(now, residual, own.part[h]));
    }
    if constexpr (short_tail == 4) {
      auto* tail = reinterpret_cast<__m128i*>(tails + 4 * column);
      _mm_store_si128(tail, _mm_dpwssd_epi32(_mm_load_si128(tail), _mm512_castsi512_si128(residual),
                                             _mm512_castsi512_si128(own.part[halves()])));
    } else if constexpr (short_tail == 8) {
      auto* tail = reinterpret_cast<__m256i*>(tails + 8 * column);
      _mm256_store_si256(tail,
                         _mm256_dpwssd_epi32(_mm256_load_si256(tail), _mm512_castsi512_si256(residual),
                                             _mm512_castsi512_si256(own.part[halves()])));
    }
  }

  // Add the sums of every column to those of the result, and clear them.
  TACITURN_AVX512 void spill_columns() {
    const __m512i zero = _mm512_setzero_si512();
    constexpr auto there = static_cast<__mmask16>((1u << short_tail) - 1);
    std::int32_t *sums = column_sums, *tail = tails;
    for (std::size_t column = 0; column < columns.rows; ++column, tail += short_tail) {
      std::int64_t* to = out.column_sums + column * out.width;
      for (std::size_t h = 0; h < halves(); ++h, sums += 16) {
        const __m512i found = _mm512_load_si512(sums);
        if (!_mm512_test_epi32_mask(found, found)) continue;
        // Beyond the width there may be sums of padding, which nobody asked for.
        if (16 * h < out.width) spill(found, out.width - 16 * h, to + 16 * h);
        _mm512_store_si512(sums, zero);
      }
      if constexpr (short_tail > 0) {
        spill(_mm512_maskz_loadu_epi32(there, tail), out.width - 16 * halves(), to + 16 * halves());
        _mm512_mask_storeu_epi32(tail, there, zero);
      }
    }
  }

  // The largest feature of a row.
  TACITURN_AVX512 std::int64_t largest_feature(std::size_t row) const {
    const std::int16_t* features = rows.features + row * count() * lanes;
    __m512i most = _mm512_setzero_si512();
    for (std::size_t n = 0; n < count(); ++n) {
      most = _mm512_max_epu16(most, _mm512_abs_epi16(_mm512_loadu_si512(features + lanes * n)));
    }
    const __m512i upper = _mm512_srli_epi32(most, 16);
    return _mm512_reduce_max_epi32(
        _mm512_max_epi32(upper, _mm512_and_si512(most, _mm512_set1_epi32(0xffff))));
  }

  // The end of the rows from `row` on that keep the sums of every column in 32 bits: a row meets a
  // column once.
  std::size_t safe_rows(std::size_t row, std::size_t end) const {
    for (std::int64_t most = 0; row < end; ++row) {
      if (pass.starts[row] == pass.starts[row + 1]) continue;
      most += largest_feature(row) * usual;
      if (most > std::numeric_limits<std::int32_t>::max()) break;
    }
    return row;
  }

  // The largest column that some rows refer to; a negative one counts as very large.
  TACITURN_AVX512 std::uint32_t largest_column(std::size_t begin, std::size_t end) const {
    std::uint32_t largest = 0;
    for (std::int64_t entry = pass.starts[begin]; entry < pass.starts[end]; ++entry) {
      largest = std::max(largest, static_cast<std::uint32_t>(pass.columns[entry]));
    }
    return largest;
  }

  TACITURN_AVX512 void run(std::size_t begin, std::size_t end) {
    if (pass.starts[begin] < pass.starts[end]) check_columns(largest_column(begin, end), columns);
    std::fill(out.row_sums + begin * out.width, out.row_sums + end * out.width, 0);
    std::fill(out.squares + begin, out.squares + end, 0);
    // So many ratings of one row keep its sums in 32 bits.
    const auto safe = std::max<std::int64_t>(
        1, (std::int64_t{1} << 31) / (std::int64_t{usual} * Residuals::norm + 1) - 1);
    // Features and sums of so many columns stay in the second cache.
    const std::size_t tile = std::max<std::size_t>(64, (768 << 10) / (pass.stride * 6));
    std::vector<std::int64_t> places(pass.starts + begin, pass.starts + end);
    for (std::size_t top = begin, bottom; top < end; top = bottom) {
      bottom = safe_rows(top, end);
      for (std::size_t limit = tile; limit < columns.rows + tile; limit += tile) {
        for (std::size_t row = top; row < bottom; ++row) {
          std::int64_t& place = places[row - begin];
          const std::int64_t last = pass.starts[row + 1];
          const std::int64_t stop =
              limit >= columns.rows
                  ? last
                  : std::lower_bound(pass.columns + place, pass.columns + last,
                                     static_cast<std::int32_t>(limit)) -
                        pass.columns;
          for (; place < stop; place = std::min(stop, place + safe)) {
            segment(row, place, std::min(stop, place + safe));
          }
        }
      }
      spill_columns();
    }
  }
};

template <int N>
void pass_vectors(const Residuals& pass, const Side& rows, const Side& columns, std::size_t begin,
                  std::size_t end, const ResidualOutput& out) {
  const std::size_t last = out.width - (pass.stride - lanes);  // columns of the last vector
  if (last <= 16) return Pass<N, 0>{pass, rows, columns, out}.run(begin, end);
  if (last <= 20) return Pass<N, 4>{pass, rows, columns, out}.run(begin, end);
  if (last <= 24) return Pass<N, 8>{pass, rows, columns, out}.run(begin, end);
  return Pass<N, 16>{pass, rows, columns, out}.run(begin, end);
}

#endif

}  // namespace

std::int64_t Residuals::largest() const noexcept {
  const auto uncut = std::max(std::int64_t{ceiling} - lowest, std::int64_t{highest} - floor);
  return std::min(std::int64_t{limit}, uncut);
}

void residual_sums(const Residuals& pass, const Side& rows, const Side& columns, std::size_t begin,
                   std::size_t end, const ResidualOutput& out, InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::avx512) {
    switch (pass.stride / lanes) {
      case 1: return pass_vectors<1>(pass, rows, columns, begin, end, out);
      case 2: return pass_vectors<2>(pass, rows, columns, begin, end, out);
      case 3: return pass_vectors<3>(pass, rows, columns, begin, end, out);
      case 4: return pass_vectors<4>(pass, rows, columns, begin, end, out);
      default: return Pass<0, 16>{pass, rows, columns, out}.run(begin, end);
    }
  }
#endif
  static_cast<void>(set);
  pass_portable(pass, rows, columns, begin, end, out);
}

}  // namespace taciturn
