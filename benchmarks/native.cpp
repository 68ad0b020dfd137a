// Peak rates of the machine, and the fused gradient in floats: the baseline of the pass on the grid.
// Compiled by benchmarks/native.py for the current machine.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace {

constexpr std::size_t lanes = 16;
constexpr int batch = 16;  // ratings of a row that are processed together

typedef float Lanes __attribute__((vector_size(lanes * sizeof(float))));
typedef float Four __attribute__((vector_size(4 * sizeof(float))));

template <typename Vector>
inline Vector load(const float* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}

template <typename Vector>
inline void store(float* to, Vector vector) {
  std::memcpy(to, &vector, sizeof vector);
}

inline Lanes widened(Four four) {
#if defined(__AVX512F__)
  return _mm512_zextps128_ps512(four);
#else
  Lanes vector = {};
  std::memcpy(&vector, &four, sizeof four);
  return vector;
#endif
}

// Sums of quarters 0 and 1 and of quarters 2 and 3 of both.
inline Lanes sum_quarters(Lanes x, Lanes y) {
  return __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
         __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
}

// Sums over the lanes of each of 16 vectors.
inline Lanes sum_lanes(const Lanes* p) {
  Lanes a[8], b[4];
  for (int i = 0; i < 8; ++i) {
    const Lanes x = p[2 * i], y = p[2 * i + 1];
    a[i] = __builtin_shufflevector(x, y, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29) +
           __builtin_shufflevector(x, y, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  }
  for (int i = 0; i < 4; ++i) {
    const Lanes x = a[2 * i], y = a[2 * i + 1];
    b[i] = __builtin_shufflevector(x, y, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +
           __builtin_shufflevector(x, y, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
  }
  return sum_quarters(sum_quarters(b[0], b[1]), sum_quarters(b[2], b[3]));
}

struct Table {
  const std::int64_t* starts;
  const std::int32_t* columns;
  const float* values;
};

// Profiles of one axis: N vectors of 16 factors in a row of `main`, the next four in `tail`.
struct Profiles {
  const float* main;
  const float* tail;
};

struct Gradient {
  float* main;
  float* tail;
};

// Both gradients of the ratings [entry, stop) of a row.
template <int N, bool Tail>
inline void segment(Table table, Profiles rows, Profiles columns, Gradient of_rows,
                    Gradient of_columns, std::int64_t row, std::int64_t entry, std::int64_t stop) {
  constexpr std::size_t width = N * lanes;
  Lanes own[N], sum[N];
  for (int n = 0; n < N; ++n) {
    own[n] = load<Lanes>(rows.main + row * width + n * lanes);
    sum[n] = load<Lanes>(of_rows.main + row * width + n * lanes);
  }
  const Four own_tail = Tail ? load<Four>(rows.tail + 4 * row) : Four{};
  Four sum_tail = Tail ? load<Four>(of_rows.tail + 4 * row) : Four{};
  const auto product = [&](std::size_t column) {
    const float* other = columns.main + column * width;
    Lanes found = own[0] * load<Lanes>(other);
    for (int n = 1; n < N; ++n) found += own[n] * load<Lanes>(other + n * lanes);
    if (Tail) found += widened(own_tail * load<Four>(columns.tail + 4 * column));
    return found;
  };
  const auto add = [&](std::size_t column, float residual) {
    const float* other = columns.main + column * width;
    float* gradient = of_columns.main + column * width;
    for (int n = 0; n < N; ++n, other += lanes, gradient += lanes) {
      sum[n] += residual * load<Lanes>(other);
      store(gradient, load<Lanes>(gradient) + residual * own[n]);
    }
    if (Tail) {
      sum_tail += residual * load<Four>(columns.tail + 4 * column);
      float* tail = of_columns.tail + 4 * column;
      store(tail, load<Four>(tail) + residual * own_tail);
    }
  };
  for (; entry < stop; entry += batch) {
    const std::int32_t* at = table.columns + entry;
    const auto size = static_cast<int>(std::min<std::int64_t>(batch, stop - entry));
    Lanes products[batch];
    alignas(64) float each[batch];
    if (size == batch) {
#pragma GCC unroll 16
      for (int i = 0; i < batch; ++i) products[i] = product(at[i]);
      store(each, sum_lanes(products) - load<Lanes>(table.values + entry));
#pragma GCC unroll 16
      for (int i = 0; i < batch; ++i) add(at[i], each[i]);
    } else {
      for (int i = 0; i < batch; ++i) products[i] = product(at[std::min(i, size - 1)]);
      store(each, sum_lanes(products));
      for (int i = 0; i < size; ++i) add(at[i], each[i] - table.values[entry + i]);
    }
  }
  for (int n = 0; n < N; ++n) store(of_rows.main + row * width + n * lanes, sum[n]);
  if (Tail) store(of_rows.tail + 4 * row, sum_tail);
}

// Both gradients of the squared error over rows [begin, end). Columns are ascending
// within a row and processed in tiles whose profiles and gradients fit into the second-level cache.
template <int N, bool Tail>
void pass(Table table, Profiles rows, Profiles columns, std::int64_t column_count, Gradient of_rows,
          Gradient of_columns, std::int64_t begin, std::int64_t end) {
  constexpr std::size_t width = N * lanes;
  constexpr std::int64_t tile = (768 << 10) / (8 * (width + 4 * Tail));
  std::fill(of_rows.main + begin * width, of_rows.main + end * width, 0.0f);
  std::fill_n(of_columns.main, column_count * width, 0.0f);
  if (Tail) {
    std::fill(of_rows.tail + 4 * begin, of_rows.tail + 4 * end, 0.0f);
    std::fill_n(of_columns.tail, 4 * column_count, 0.0f);
  }
  std::vector<std::int64_t> places(table.starts + begin, table.starts + end);
  for (std::int64_t limit = tile; limit < column_count + tile; limit += tile) {
    for (std::int64_t row = begin; row < end; ++row) {
      std::int64_t& place = places[row - begin];
      const std::int64_t last = table.starts[row + 1];
      const std::int64_t stop =
          limit >= column_count
              ? last
              : std::lower_bound(table.columns + place, table.columns + last,
                                 static_cast<std::int32_t>(limit)) -
                    table.columns;
      if (place < stop) {
        segment<N, Tail>(table, rows, columns, of_rows, of_columns, row, place, stop);
      }
      place = stop;
    }
  }
}

}  // namespace

extern "C" {

// a = b + c · factor, the triad of STREAM.
void triad(double* a, const double* b, const double* c, double factor, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) a[i] = b[i] + factor * c[i];
}

// rounds × 12 × 16 float multiply-adds, in 12 independent chains.
float multiply_add(std::int64_t rounds, float factor, float summand) {
  Lanes sums[12];
  for (int i = 0; i < 12; ++i) sums[i] = Lanes{} + static_cast<float>(i);
  const Lanes by = Lanes{} + factor, more = Lanes{} + summand;
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) sums[i] = sums[i] * by + more;
  }
  float total = 0;
  for (const Lanes sum : sums) total += sum[0];
  return total;
}

// Fused pass with 20 or 64 factors. Returns false for other numbers of factors.
bool float_pass(std::int64_t factors, Table table, Profiles rows, Profiles columns,
                std::int64_t column_count, Gradient of_rows, Gradient of_columns, std::int64_t begin, std::int64_t end) {
  if (factors == 20) {
    pass<1, true>(table, rows, columns, column_count, of_rows, of_columns, begin, end);
  } else if (factors == 64) {
    pass<4, false>(table, rows, columns, column_count, of_rows, of_columns, begin, end);
  } else {
    return false;
  }
  return true;
}

}  // extern "C"
