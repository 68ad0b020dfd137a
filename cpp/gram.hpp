// Gram matrices of the features of a row, and Cholesky factorization. Up to `chunk` entries are summed
// in floats, and these sums in doubles.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "lanes.hpp"

namespace taciturn::gram {

constexpr std::size_t chunk = 64;         // entries summed in floats
constexpr std::size_t slice = 16;         // columns of features stored together
constexpr std::size_t rows_multiple = 8;  // storage of sums has a multiple of this many rows

// A tile of the sums has `rows` rows and one to `widest` vectors of `lanes` columns: as many as fit
// into the registers, with a factor for each row and the vectors that it multiplies.
template <std::size_t Lanes, std::size_t Rows, std::size_t Widest>
struct Tile {
  static constexpr std::size_t lanes = Lanes, rows = Rows, widest = Widest;
  using Vector = typename Floats<Lanes>::Vector;
  static_assert(rows_multiple % Rows == 0 && slice % Lanes == 0 && Widest <= 3);
};
using PortableTile = Tile<4, 4, 2>;
using Avx2Tile = Tile<8, 4, 3>;
using Avx512Tile = Tile<16, 8, 3>;

// Memory aligned to a cache line, which vectors of one line should not cross.
template <typename T>
class Aligned {
 public:
  explicit Aligned(std::size_t size) : memory_(size + line / sizeof(T)) {
    const auto past = reinterpret_cast<std::uintptr_t>(memory_.data()) % line;
    data = memory_.data() + (past ? (line - past) / sizeof(T) : 0);
  }
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;

  T* data;

 private:
  static constexpr std::size_t line = 64;
  std::vector<T> memory_;
};

constexpr std::size_t rounded_up(std::size_t size, std::size_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

// Features of up to `chunk` entries, in slices of `slice` columns: a tile then reads few streams of
// consecutive memory. The line between slices keeps them apart in the cache.
class Panel {
 public:
  explicit Panel(std::size_t width) : memory_(width / slice * stride) {}

  // Copies a line of `width` features, a multiple of `slice`.
  inline __attribute__((always_inline)) void set(std::size_t entry, const float* line,
                                                 std::size_t width) {
    float* to = memory_.data + entry * slice;
    for (std::size_t at = 0; at < width; at += slice, to += stride) {
      std::memcpy(to, line + at, slice * sizeof(float));
    }
  }

  // Feature `column` of the first entry; that of the next is `slice` further.
  float* column(std::size_t column) const {
    return memory_.data + column / slice * stride + column % slice;
  }

 private:
  static constexpr std::size_t stride = (chunk + 1) * slice;
  Aligned<float> memory_;
};

// Symmetric sums of products: the rows of the features, and all columns from the diagonal on.
struct Sums {
  double* data;
  std::size_t stride;
};

// Sets or adds Σ_e panel[e, a] · panel[e, b] for a tile of `Wide` vectors that starts at (a, b).
template <typename Tile, std::size_t Wide>
inline __attribute__((always_inline)) void add_tile(const Panel& panel, std::size_t entries,
                                                    std::size_t a, std::size_t b, Sums sums,
                                                    bool is_first) {
  using Vector = typename Tile::Vector;
  constexpr std::size_t lanes = Tile::lanes;
  const float* left = panel.column(a);
  const float* right[Wide];
  for (std::size_t w = 0; w < Wide; ++w) right[w] = panel.column(b + w * lanes);
  Vector tile[Tile::rows][Wide] = {};
  for (std::size_t e = 0; e < entries; ++e) {
    Vector line[Wide];
    for (std::size_t w = 0; w < Wide; ++w) line[w] = load<Vector>(right[w] + e * slice);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < Tile::rows; ++i) {
#pragma GCC unroll 3
      for (std::size_t w = 0; w < Wide; ++w) tile[i][w] += left[e * slice + i] * line[w];
    }
  }
#pragma GCC unroll 8
  for (std::size_t i = 0; i < Tile::rows; ++i) {
    double* line = sums.data + (a + i) * sums.stride + b;
    float found[Wide * lanes];  // the tile itself stays in registers
#pragma GCC unroll 3
    for (std::size_t w = 0; w < Wide; ++w) std::memcpy(found + w * lanes, &tile[i][w], sizeof(Vector));
    if (is_first) {
      for (std::size_t j = 0; j < Wide * lanes; ++j) line[j] = found[j];
    } else {
      for (std::size_t j = 0; j < Wide * lanes; ++j) line[j] += found[j];
    }
  }
}

// Sets or adds Σ_e panel[e, a] · panel[e, b] for the features a and the columns b ≥ a. Tiles one above
// another share the columns that they multiply.
template <typename Tile>
inline __attribute__((always_inline)) void add_products(const Panel& panel, std::size_t entries,
                                                        std::size_t width, std::size_t features,
                                                        Sums sums, bool is_first) {
  constexpr std::size_t lanes = Tile::lanes;
  std::size_t count = 0;
  for (std::size_t b = 0; b < width; b += count * lanes) {
    const std::size_t left = (width - b) / lanes;
    count = Tile::widest == 3 && (left > 4 || left == 3) ? 3 : std::min<std::size_t>(left, 2);
    const std::size_t end = b + count * lanes;
    for (std::size_t a = 0; a < std::min(features, end); a += Tile::rows) {
      const std::size_t from = std::max(b, a / lanes * lanes), wide = (end - from) / lanes;
      if constexpr (Tile::widest == 3) {
        if (wide == 3) add_tile<Tile, 3>(panel, entries, a, from, sums, is_first);
      }
      if (wide == 2) add_tile<Tile, 2>(panel, entries, a, from, sums, is_first);
      if (wide == 1) add_tile<Tile, 1>(panel, entries, a, from, sums, is_first);
    }
  }
}

// Sets sums to the products of the entries [first, last), at least one. line(entry) points to the
// features of an entry, valid until the next call.
template <typename Tile, typename Line>
inline __attribute__((always_inline)) void sum_entries(std::int64_t first, std::int64_t last,
                                                       std::size_t width, std::size_t features,
                                                       Line line, Panel& panel, Sums sums) {
  for (std::int64_t entry = first; entry < last; entry += chunk) {
    const auto entries = static_cast<std::size_t>(std::min<std::int64_t>(chunk, last - entry));
    for (std::size_t e = 0; e < entries; ++e) {
      panel.set(e, line(entry + static_cast<std::int64_t>(e)), width);
    }
    add_products<Tile>(panel, entries, width, features, sums, entry == first);
  }
}

// Inner product ⟨a, b⟩ of length n. Eight partial sums hide the latency of additions.
template <typename T>
inline __attribute__((always_inline)) double dot(const T* a, const double* b, std::size_t n) {
  double parts[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (std::size_t p = 0; p < 8; ++p) parts[p] += static_cast<double>(a[i + p]) * b[i + p];
  }
  double sum = 0;
  for (; i < n; ++i) sum += static_cast<double>(a[i]) * b[i];
  for (const double part : parts) sum += part;
  return sum;
}

// Subtracts multiples of `Count` pivot rows, starting at `first`, from `Rows` rows, starting at `at`, to
// clear the pivots' columns. All columns from `at` to `width` change, rounded to whole vectors.
template <typename Tile, std::size_t Count, std::size_t Rows>
inline __attribute__((always_inline)) void subtract(double* rows, std::size_t first, std::size_t at,
                                                    std::size_t width, std::size_t stride) {
  constexpr std::size_t lanes = Tile::lanes / 2;
  typedef double Doubles __attribute__((vector_size(lanes * sizeof(double))));
  const double* pivots = rows + first * stride;
  double* under = rows + at * stride;
  double factors[Count][Rows];
  for (std::size_t p = 0; p < Count; ++p) {
    for (std::size_t r = 0; r < Rows; ++r) factors[p][r] = pivots[p * stride + at + r];
  }
  for (std::size_t j = at / lanes * lanes; j < width; j += lanes) {
    Doubles values[Rows];
    for (std::size_t r = 0; r < Rows; ++r) std::memcpy(&values[r], under + r * stride + j, sizeof(Doubles));
    for (std::size_t p = 0; p < Count; ++p) {
      Doubles pivot;
      std::memcpy(&pivot, pivots + p * stride + j, sizeof pivot);
      for (std::size_t r = 0; r < Rows; ++r) values[r] -= factors[p][r] * pivot;
    }
    for (std::size_t r = 0; r < Rows; ++r) std::memcpy(under + r * stride + j, &values[r], sizeof(Doubles));
  }
}

// Turns the first n rows of (S | R), S symmetric with its upper triangle given, into (U | U⁻ᵀR)
// with S = UᵀU. Rows have `width` columns and are `stride` apart, a multiple of `rows_multiple` that
// covers whole vectors; entries below the diagonal and beyond the width become undefined. Several
// pivots are applied to two rows at once, so that memory is read less often. Returns false, with the
// rows in an undefined state, if S is not positive definite.
template <typename Tile>
inline __attribute__((always_inline)) bool eliminate(double* rows, std::size_t n,
                                                     std::size_t width, std::size_t stride) {
  constexpr std::size_t together = Tile::rows;
  for (std::size_t first = 0; first < n; first += together) {
    const std::size_t last = std::min(first + together, n);
    for (std::size_t k = first; k < last; ++k) {
      double* pivot = rows + k * stride;
      for (std::size_t p = first; p < k; ++p) subtract<Tile, 1, 1>(rows, p, k, width, stride);
      if (!(pivot[k] > 0)) return false;
      const double inverse = 1 / std::sqrt(pivot[k]);
      for (std::size_t j = k; j < width; ++j) pivot[j] *= inverse;
    }
    std::size_t i = last;
    for (; i + 2 <= n; i += 2) subtract<Tile, together, 2>(rows, first, i, width, stride);
    if (i < n) subtract<Tile, together, 1>(rows, first, i, width, stride);
  }
  return true;
}

}  // namespace taciturn::gram
