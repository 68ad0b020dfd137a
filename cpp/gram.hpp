// Gram matrices of the features of a row, and Cholesky factorization. Up to `chunk` entries are summed
// in floats, and these sums in doubles.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "lanes.hpp"

namespace taciturn::gram {

constexpr std::size_t chunk = 64;      // entries summed in floats
constexpr std::size_t rows_multiple = 8;  // storage of sums has a multiple of this many rows

// A tile of the sums has `rows` rows and one to `widest` vectors of `lanes` columns: as many as fit
// into the registers, with a factor for each row and the vectors that it multiplies.
template <std::size_t Lanes, std::size_t Rows, std::size_t Widest>
struct Tile {
  static constexpr std::size_t lanes = Lanes, rows = Rows, widest = Widest;
  using Vector = typename Floats<Lanes>::Vector;
  static_assert(rows_multiple % Rows == 0 && Widest <= 3);
};
using PortableTile = Tile<4, 4, 2>;
using Avx2Tile = Tile<8, 4, 3>;
using Avx512Tile = Tile<16, 8, 3>;

// Adds Σ_e panel[e, a] · panel[e, b] to sums[a, b] for a tile of `Wide` vectors that starts at (a, b).
template <typename Tile, std::size_t Wide>
inline __attribute__((always_inline)) void add_tile(const float* panel, std::size_t entries,
                                                    std::size_t width, std::size_t a,
                                                    std::size_t b, double* sums) {
  using Vector = typename Tile::Vector;
  constexpr std::size_t lanes = Tile::lanes;
  Vector tile[Tile::rows][Wide] = {};
  for (std::size_t e = 0; e < entries; ++e) {
    const float* line = panel + e * width;
    Vector right[Wide];
    for (std::size_t w = 0; w < Wide; ++w) right[w] = load<Vector>(line + b + w * lanes);
    for (std::size_t i = 0; i < Tile::rows; ++i) {
      for (std::size_t w = 0; w < Wide; ++w) tile[i][w] += line[a + i] * right[w];
    }
  }
  for (std::size_t i = 0; i < Tile::rows; ++i) {
    double* line = sums + (a + i) * width + b;
    for (std::size_t w = 0; w < Wide; ++w) {
      for (std::size_t l = 0; l < lanes; ++l) line[w * lanes + l] += tile[i][w][l];
    }
  }
}

// Adds Σ_e panel[e, a] · panel[e, b] for the features a and the columns b ≥ a.
template <typename Tile>
inline __attribute__((always_inline)) void add_products(const float* panel, std::size_t entries,
                                                        std::size_t width, std::size_t features,
                                                        double* sums) {
  constexpr std::size_t lanes = Tile::lanes;
  for (std::size_t a = 0; a < features; a += Tile::rows) {
    std::size_t b = a / lanes * lanes, left = (width - b) / lanes;
    if constexpr (Tile::widest == 3) {
      for (; left > 4 || left == 3; left -= 3, b += 3 * lanes) {
        add_tile<Tile, 3>(panel, entries, width, a, b, sums);
      }
    }
    for (; left > 1; left -= 2, b += 2 * lanes) {
      add_tile<Tile, 2>(panel, entries, width, a, b, sums);
    }
    if (left > 0) add_tile<Tile, 1>(panel, entries, width, a, b, sums);
  }
}

// Adds the products of the entries [first, last). fill(entry, line) writes the features of an entry;
// `panel` holds `chunk` lines of `width` floats.
template <typename Tile, typename Fill>
inline __attribute__((always_inline)) void add_entries(std::int64_t first, std::int64_t last,
                                                       std::size_t width, std::size_t features,
                                                       Fill fill, float* panel, double* sums) {
  for (std::int64_t entry = first; entry < last; entry += chunk) {
    const auto entries = static_cast<std::size_t>(std::min<std::int64_t>(chunk, last - entry));
    for (std::size_t e = 0; e < entries; ++e) {
      fill(entry + static_cast<std::int64_t>(e), panel + e * width);
    }
    add_products<Tile>(panel, entries, width, features, sums);
  }
}

// Inner product ⟨a, b⟩ of length n. Eight partial sums hide the latency of additions.
inline __attribute__((always_inline)) double dot(const double* a, const double* b, std::size_t n) {
  double parts[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (std::size_t p = 0; p < 8; ++p) parts[p] += a[i + p] * b[i + p];
  }
  double sum = 0;
  for (; i < n; ++i) sum += a[i] * b[i];
  for (const double part : parts) sum += part;
  return sum;
}

// Subtracts multiples of `Count` pivot rows, starting at `first`, from a row to clear column `at`.
template <std::size_t Count>
inline __attribute__((always_inline)) void subtract(const double* rows, std::size_t first,
                                                    std::size_t width, std::size_t stride,
                                                    std::size_t at, double* row) {
  const double* pivots[Count];
  double factors[Count];
  for (std::size_t p = 0; p < Count; ++p) {
    pivots[p] = rows + (first + p) * stride;
    factors[p] = pivots[p][at];
  }
  for (std::size_t j = at; j < width; ++j) {
    double value = row[j];
    for (std::size_t p = 0; p < Count; ++p) value -= factors[p] * pivots[p][j];
    row[j] = value;
  }
}

// Turns the first n rows of (S | R), S symmetric with its upper triangle given, into (U | U⁻ᵀR)
// with S = UᵀU. Rows have `width` columns and are `stride` apart; entries below the diagonal are not
// changed. Several pivots are applied to the rows below at once, so that those are read less often.
// Returns false, with the rows in an undefined state, if S is not positive definite.
inline __attribute__((always_inline)) bool eliminate(double* rows, std::size_t n,
                                                     std::size_t width, std::size_t stride) {
  constexpr std::size_t together = 8;
  for (std::size_t first = 0; first < n; first += together) {
    const std::size_t last = std::min(first + together, n);
    for (std::size_t k = first; k < last; ++k) {
      double* pivot = rows + k * stride;
      for (std::size_t p = first; p < k; ++p) subtract<1>(rows, p, width, stride, k, pivot);
      if (!(pivot[k] > 0)) return false;
      const double inverse = 1 / std::sqrt(pivot[k]);
      for (std::size_t j = k; j < width; ++j) pivot[j] *= inverse;
    }
    for (std::size_t i = last; i < n; ++i) {
      subtract<together>(rows, first, width, stride, i, rows + i * stride);
    }
  }
  return true;
}

}  // namespace taciturn::gram
