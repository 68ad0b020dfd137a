#include "targets.hpp"

#if defined(TACITURN_X86)
#include <algorithm>
#include <bit>
#include <cstring>

#include "avx512_lanes.hpp"
#include "error_segments.hpp"
#include "error_sums_vectors.hpp"
#include "scratch_sums.hpp"

namespace taciturn {

namespace {

constexpr std::size_t lanes = 32;  // 16-bit features in a vector
constexpr int batch = 16;          // ratings of a row that are processed together

// One pass over a range of rows. N is the number of vectors in a feature row, or 0 if only known at
// run time. A vector of 32 features needs two vectors of 32-bit sums. In the last feature vector,
// only the first `Tail` (0, 4, 8 or 16) of the upper 16 columns need sums. A tail of 4 or 8 sums is
// stored apart from the full vectors, so that more columns share a cache line. A pass without weights
// is not `Weighted` and is compiled without them.
template <int N, int Tail, bool Weighted>
struct Pass {
  const ErrorPass& pass;
  const Axis& rows;
  const Axis& columns;
  const ErrorOutput& out;
  static constexpr std::size_t short_tail = Tail % 16;
  ScratchSums scratch{columns.rows * (16 * halves() + short_tail)};
  std::int32_t* const column_sums = scratch.data;
  std::int32_t* const tails = column_sums + columns.rows * 16 * halves();
  const std::int16_t* const all_features = columns.features;
  const float* const all_lines = columns.lines;
  const std::int32_t usual = usual_error(pass);
  static constexpr int room = N ? N : ErrorPass::stride_max / lanes;

  std::size_t count() const { return N ? N : pass.stride / lanes; }
  std::size_t halves() const { return 2 * count() - (Tail < 16); }

  // Features of a row, each in the low half of a 32-bit lane.
  struct Own {
    alignas(64) __m512i part[2 * room];
  };

  // Up to 16 ratings of a row.
  struct Batch {
    const std::int32_t* columns;
    int size;
    alignas(64) std::int32_t errors[batch];  // low half: error i; high half: error i + 1
    alignas(64) std::int32_t of_columns[batch];  // errors for the sums of columns, if Weighted
  };

  // Adds the terms of ratings [entry, stop) of a row: few enough that its sums fit into 32 bits.
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
    __m512i squares = zero;
    // Computing the errors of a batch has a long latency, so the next batch starts before this one
    // is added.
    Batch batches[2];
    compute_errors(batches[0], row, own, entry, stop, squares);
    for (int now = 0; entry < stop; now = 1 - now) {
      entry += batch;
      if (entry < stop) compute_errors(batches[1 - now], row, own, entry, stop, squares);
      add(batches[now], split, sum_low, sum_high);
    }
    for (std::size_t n = 0; n < count(); ++n) {
      spill_unpacked(sum_low[n], sum_high[n], std::min(lanes, out.width - n * lanes),
                     out.row_sums + row * out.width + n * lanes);
    }
    out.squares[row] += _mm512_reduce_add_epi64(
        _mm512_add_epi64(_mm512_cvtepu32_epi64(_mm512_castsi512_si256(squares)),
                         _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(squares, 1))));
  }

  // Computes the errors of up to 16 ratings, starting at `entry`.
  TACITURN_AVX512 inline __attribute__((always_inline)) void compute_errors(Batch& now, std::size_t row,
                                                                 const __m512i* own,
                                                                 std::int64_t entry,
                                                                 std::int64_t stop,
                                                                 __m512i& squares) const {
    const std::size_t stride = count() * lanes;
    now.columns = pass.columns + entry;
    now.size = static_cast<int>(std::min<std::int64_t>(batch, stop - entry));
    alignas(64) double lines[batch];  // base and scale of each column, as two floats
    alignas(16) std::uint8_t classes[batch];  // of each column, if Weighted
    __m512i products[batch];
    if (now.size == batch) {
#pragma GCC unroll 16
      for (int i = 0; i < batch; ++i) {
        const std::size_t column = static_cast<std::uint32_t>(now.columns[i]);
        std::memcpy(lines + i, all_lines + 2 * column, sizeof(double));
        products[i] = product(own, all_features + column * stride);
        if constexpr (Weighted) classes[i] = pass.weights->columns[column];
      }
    } else {
      for (int i = 0; i < batch; ++i) {
        const auto column = static_cast<std::size_t>(now.columns[std::min(i, now.size - 1)]);
        std::memcpy(lines + i, columns.lines + 2 * column, sizeof(double));
        products[i] = product(own, columns.features + column * stride);
        if constexpr (Weighted) classes[i] = pass.weights->columns[column];
      }
    }
    const __m512i all = clipped_errors(row, entry, now.size, lines, sum_lanes(products));
    const __mmask16 large =
        _mm512_cmpgt_epi32_mask(_mm512_abs_epi32(all), _mm512_set1_epi32(usual));
    if (large) [[unlikely]] add_large_errors(row, now.columns, large, all);
    __m512i r = _mm512_maskz_mov_epi32(static_cast<__mmask16>(~large), all);
    const __m512i low_halves = _mm512_set1_epi32(0xffff);
    const __m512i unweighted = _mm512_and_si512(r, low_halves);
    squares = _mm512_dpwssd_epi32(squares, unweighted, unweighted);
    if constexpr (Weighted) {
      const PairWeights& weights = *pass.weights;
      const std::size_t line = weights.rows[row] * PairWeights::classes;
      const __m512i found =
          _mm512_cvtepu8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(classes)));
      _mm512_store_si512(now.of_columns, weighted(r, found, weights.of_columns.data() + line));
      r = weighted(r, found, weights.of_rows.data() + line);
    }
    const __m512i next = _mm512_alignr_epi32(_mm512_setzero_si512(), r, 1);
    const __m512i low = _mm512_and_si512(r, low_halves);
    _mm512_store_si512(now.errors, _mm512_or_si512(low, _mm512_slli_epi32(next, 16)));
  }

  // Errors times the weights of their classes in a line of 64 weights; see weighted_error().
  TACITURN_AVX512 static __m512i weighted(__m512i errors, __m512i classes, const std::int16_t* line) {
    const __m512i weights = _mm512_maskz_permutex2var_epi16(
        0x55555555, _mm512_load_si512(line), classes, _mm512_load_si512(line + lanes));
    const __m512i half = _mm512_set1_epi32(PairWeights::one / 2);
    const __m512i size = _mm512_srli_epi32(
        _mm512_dpwssd_epi32(half, _mm512_abs_epi32(errors), weights), PairWeights::bits);
    return _mm512_mask_sub_epi32(size, _mm512_movepi32_mask(errors), _mm512_setzero_si512(), size);
  }

  // Adds the terms of the ratings in `large`, whose errors are too large for 32-bit sums.
  TACITURN_AVX512 __attribute__((noinline)) void add_large_errors(std::size_t row,
                                                                  const std::int32_t* at,
                                                                  unsigned large,
                                                                  __m512i errors) const {
    alignas(64) std::int32_t each[batch];
    _mm512_store_si512(each, errors);
    for (; large != 0; large &= large - 1) {
      const int i = std::countr_zero(large);
      add_large_error(pass, rows, row, columns, at[i], each[i], out);
    }
  }

  // Adds error × feature to the sums of the row and of the columns.
  TACITURN_AVX512 inline __attribute__((always_inline)) void add(const Batch& now, const Own& own,
                                                             __m512i* sum_low, __m512i* sum_high) {
    if (now.size == batch) {
#pragma GCC unroll 8
      for (int i = 0; i < batch; i += 2) add_pair(now, i, i + 1, own, sum_low, sum_high);
      return;
    }
    for (int i = 0; i < now.size; i += 2) {
      // The last of an odd number is paired with itself, with an error of zero.
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
    const __m512i both = _mm512_set1_epi32(now.errors[i]);
    for (std::size_t n = 0; n < count(); ++n) {
      const __m512i one = _mm512_loadu_si512(first + lanes * n);
      const __m512i two = _mm512_loadu_si512(second + lanes * n);
      sum_low[n] = _mm512_dpwssd_epi32(sum_low[n], both, _mm512_unpacklo_epi16(one, two));
      sum_high[n] = _mm512_dpwssd_epi32(sum_high[n], both, _mm512_unpackhi_epi16(one, two));
    }
    add_to(column, Weighted ? _mm512_set1_epi32(now.of_columns[i]) : both, own);
    add_to(beside, _mm512_set1_epi32((Weighted ? now.of_columns : now.errors)[i + 1]), own);
  }

  // Inner product of the row's features with those of a column, in 16 partial sums.
  TACITURN_AVX512 __m512i product(const __m512i* own, const std::int16_t* other) const {
    __m512i sum = _mm512_madd_epi16(own[0], _mm512_loadu_si512(other));
    for (std::size_t n = 1; n < count(); ++n) {
      sum = _mm512_dpwssd_epi32(sum, own[n], _mm512_loadu_si512(other + lanes * n));
    }
    return sum;
  }

  // Clipped prediction errors of `size` ratings, followed by zeros; see clipped_error().
  TACITURN_AVX512 __m512i clipped_errors(std::size_t row, std::int64_t entry, int size,
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
    // For a NaN prediction, the instruction returns its second operand: the floor.
    const __m512 raised =
        _mm512_max_ps(prediction, _mm512_set1_ps(static_cast<float>(pass.floor)));
    const __m512 inside = _mm512_min_ps(raised, _mm512_set1_ps(static_cast<float>(pass.ceiling)));
    const __m512i value = _mm512_maskz_loadu_epi32(there, pass.values + entry);
    const __m512i clipped = _mm512_min_epi32(_mm512_max_epi32(value, _mm512_set1_epi32(pass.lowest)),
                                         _mm512_set1_epi32(pass.highest));
    const __m512i all = _mm512_maskz_sub_epi32(there, _mm512_cvtps_epi32(inside), clipped);
    return _mm512_min_epi32(_mm512_max_epi32(all, _mm512_set1_epi32(-pass.threshold)),
                            _mm512_set1_epi32(pass.threshold));
  }

  // Adds error × the row's features to the sums of a column.
  TACITURN_AVX512 inline __attribute__((always_inline)) void add_to(std::size_t column,
                                                                __m512i error,
                                                                const Own& own) const {
    std::int32_t* sum = column_sums + column * 16 * halves();
    for (std::size_t h = 0; h < halves(); ++h, sum += 16) {
      const __m512i now = _mm512_load_si512(sum);
      _mm512_store_si512(sum, _mm512_dpwssd_epi32(now, error, own.part[h]));
    }
    if constexpr (short_tail == 4) {
      auto* tail = reinterpret_cast<__m128i*>(tails + 4 * column);
      _mm_store_si128(tail, _mm_dpwssd_epi32(_mm_load_si128(tail), _mm512_castsi512_si128(error),
                                             _mm512_castsi512_si128(own.part[halves()])));
    } else if constexpr (short_tail == 8) {
      auto* tail = reinterpret_cast<__m256i*>(tails + 8 * column);
      _mm256_store_si256(tail,
                         _mm256_dpwssd_epi32(_mm256_load_si256(tail), _mm512_castsi512_si256(error),
                                             _mm512_castsi512_si256(own.part[halves()])));
    }
  }

  // Adds the 32-bit sums of every column to the output, and sets them to zero.
  TACITURN_AVX512 void spill_columns() {
    const __m512i zero = _mm512_setzero_si512();
    constexpr auto there = static_cast<__mmask16>((1u << short_tail) - 1);
    std::int32_t *sums = column_sums, *tail = tails;
    for (std::size_t column = 0; column < columns.rows; ++column, tail += short_tail) {
      std::int64_t* to = out.column_sums + column * out.width;
      for (std::size_t h = 0; h < halves(); ++h, sums += 16) {
        const __m512i found = _mm512_load_si512(sums);
        if (!_mm512_test_epi32_mask(found, found)) continue;
        // Sums beyond the width are sums over padding.
        if (16 * h < out.width) spill(found, out.width - 16 * h, to + 16 * h);
        _mm512_store_si512(sums, zero);
      }
      if constexpr (short_tail > 0) {
        spill(_mm512_maskz_loadu_epi32(there, tail), out.width - 16 * halves(), to + 16 * halves());
        _mm512_mask_storeu_epi32(tail, there, zero);
      }
    }
  }

  void run(std::size_t begin, std::size_t end) {
    for_segments(
        pass, rows, columns, begin, end, out,
        [this](std::size_t row, std::int64_t entry, std::int64_t stop) {
          segment(row, entry, stop);
        },
        [this] { spill_columns(); });
  }
};

template <int N, bool Weighted>
void pass_vectors(const ErrorPass& pass, const Axis& rows, const Axis& columns, std::size_t begin,
                  std::size_t end, const ErrorOutput& out) {
  const std::size_t last = out.width - (pass.stride - lanes);  // columns in the last vector
  if (last <= 16) return Pass<N, 0, Weighted>{pass, rows, columns, out}.run(begin, end);
  if (last <= 20) return Pass<N, 4, Weighted>{pass, rows, columns, out}.run(begin, end);
  if (last <= 24) return Pass<N, 8, Weighted>{pass, rows, columns, out}.run(begin, end);
  return Pass<N, 16, Weighted>{pass, rows, columns, out}.run(begin, end);
}

template <bool Weighted>
void pass_any(const ErrorPass& pass, const Axis& rows, const Axis& columns, std::size_t begin,
              std::size_t end, const ErrorOutput& out) {
  switch (pass.stride / lanes) {
    case 1: return pass_vectors<1, Weighted>(pass, rows, columns, begin, end, out);
    case 2: return pass_vectors<2, Weighted>(pass, rows, columns, begin, end, out);
    case 3: return pass_vectors<3, Weighted>(pass, rows, columns, begin, end, out);
    case 4: return pass_vectors<4, Weighted>(pass, rows, columns, begin, end, out);
    default: return Pass<0, 16, Weighted>{pass, rows, columns, out}.run(begin, end);
  }
}

}  // namespace

void error_sums_avx512(const ErrorPass& pass, const Axis& rows, const Axis& columns,
                          std::size_t begin, std::size_t end, const ErrorOutput& out) {
  if (pass.weights) return pass_any<true>(pass, rows, columns, begin, end, out);
  return pass_any<false>(pass, rows, columns, begin, end, out);
}

}  // namespace taciturn
#endif
