// Scores of items for users. For several users, items are copied to a panel, in which the same entry of
// neighbouring items is in one vector, and tiles of scores stay in registers. For one user, scores are
// computed straight from the items' rows. Each score is summed in the same order either way.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "lanes.hpp"
#include "targets.hpp"
#include "top_k.hpp"

namespace taciturn::panel {

constexpr float worst = -std::numeric_limits<float>::infinity();

// A tile of scores has `users` users and `vectors` vectors of `lanes` items, as many as fit into the
// registers. With a single user there are more vectors, whose sums do not wait for each other.
template <std::size_t Lanes, std::size_t Users, std::size_t Vectors, std::size_t VectorsOfOne>
struct Tile {
  static constexpr std::size_t lanes = Lanes, users = Users, vectors = Vectors;
  static constexpr std::size_t vectors_of_one = VectorsOfOne;
  using Vector = typename Floats<Lanes>::Vector;
};

// Copies the columns of the rows [first, first + Count), times a weight, to out[k, row] with rows of
// `Lanes`. Rows from `last` repeat the one before.
template <std::size_t Lanes, std::size_t Count>
inline __attribute__((always_inline)) void copy_columns(const RowsOfFloats& from, std::size_t first,
                                                        std::size_t last, float weight, float* out) {
  const float* rows[Count];
  for (std::size_t i = 0; i < Count; ++i) rows[i] = from.row(std::min(first + i, last - 1));
  for (std::size_t k = 0; k < from.width; ++k, out += Lanes) {
    for (std::size_t i = 0; i < Count; ++i) out[i] = weight * rows[i][k];
  }
}

struct PortableTile : Tile<4, 4, 2, 4> {
  static constexpr std::size_t together = 4;  // rows that are transposed together
  static constexpr bool reads_rows = false;   // one user is served from panels too

  static void transpose(const RowsOfFloats& from, std::size_t first, std::size_t last, float weight,
                        float* out) {
    copy_columns<lanes, together>(from, first, last, weight, out);
  }
};

#if defined(TACITURN_X86)
// Transposes 8 columns of 8 rows, times a weight unless it is 1.
template <bool IsWeighted>
TACITURN_AVX2 inline void columns_of_8(const float* rows, std::size_t stride, __m256 weight,
                                       __m256 (&columns)[8]) {
  __m256 halves[8], pairs[8];
  // Rows i and i + 4 share a register, so that all later steps stay within its halves.
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t half = 0; half < 2; ++half) {
      const float* row = rows + i * stride + 4 * half;
      const __m256 low = _mm256_castps128_ps256(_mm_loadu_ps(row));
      const __m256 both = _mm256_insertf128_ps(low, _mm_loadu_ps(row + 4 * stride), 1);
      halves[i + 4 * half] = IsWeighted ? _mm256_mul_ps(weight, both) : both;
    }
  }
  for (std::size_t i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(halves[i], halves[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(halves[i], halves[i + 1]);
  }
  for (std::size_t i = 0; i < 8; i += 4) {
    for (std::size_t j = 0; j < 2; ++j) {
      columns[i + 2 * j] = _mm256_shuffle_ps(pairs[i + j], pairs[i + j + 2], 0x44);
      columns[i + 2 * j + 1] = _mm256_shuffle_ps(pairs[i + j], pairs[i + j + 2], 0xEE);
    }
  }
}

// Adds the products of the columns from `begin`, fewer than 8, of 8 rows and one user.
TACITURN_AVX2 inline __m256 add_last_columns(const RowsOfFloats& from, std::size_t item,
                                             std::size_t begin, float weight, const float* user,
                                             __m256 sum) {
  float left[8 * 8];
  std::size_t first = 0;  // column in `left`
  if (from.width < 8) {
    copy_columns<8, 8>(from, item, item + 8, weight, left);
  } else {
    __m256 columns[8];
    first = from.width - 8;
    columns_of_8<true>(from.row(item) + first, from.stride, _mm256_set1_ps(weight), columns);
    for (std::size_t i = 0; i < 8; ++i) _mm256_storeu_ps(left + 8 * i, columns[i]);
  }
  for (std::size_t k = begin; k < from.width; ++k) {
    sum = _mm256_fmadd_ps(_mm256_broadcast_ss(user + k), _mm256_loadu_ps(left + 8 * (k - first)), sum);
  }
  return sum;
}

// Asks for the 8 rows that come a little later: without this, rows from memory arrive too late.
TACITURN_AVX2 inline void prefetch(const float* rows, std::size_t stride) {
  constexpr std::uintptr_t ahead = 8192, line = 64;
  const auto first = reinterpret_cast<std::uintptr_t>(rows) + ahead;  // possibly after the last row
  for (std::uintptr_t at = 0; at < 8 * stride * sizeof(float); at += line) {
    _mm_prefetch(reinterpret_cast<const char*>(first + at), _MM_HINT_T0);
  }
}

// Adds the products of the rows [first, first + 8 · groups) and one user to their scores.
template <bool IsWeighted>
TACITURN_AVX2 inline void add_products(const RowsOfFloats& from, std::size_t first,
                                       std::size_t groups, float weight, const float* user,
                                       float* scores) {
  const __m256 factor = _mm256_set1_ps(weight);
  const std::size_t width = from.width, stride = from.stride;
  for (std::size_t group = 0; group < groups; ++group, scores += 8) {
    const float* rows = from.row(first + 8 * group);
    prefetch(rows, stride);
    __m256 sum = _mm256_loadu_ps(scores);
    std::size_t k = 0;
    for (; k + 8 <= width; k += 8) {
      __m256 columns[8];
      columns_of_8<IsWeighted>(rows + k, stride, factor, columns);
      for (std::size_t i = 0; i < 8; ++i) {
        sum = _mm256_fmadd_ps(_mm256_broadcast_ss(user + k + i), columns[i], sum);
      }
    }
    if (k < width) sum = add_last_columns(from, first + 8 * group, k, weight, user, sum);
    _mm256_storeu_ps(scores, sum);
  }
}

// Both vector instruction sets read the rows of items alike, 8 at a time.
template <std::size_t Lanes, std::size_t Users, std::size_t Vectors, std::size_t VectorsOfOne>
struct VectorTile : Tile<Lanes, Users, Vectors, VectorsOfOne> {
  static constexpr std::size_t together = 8;
  static constexpr bool reads_rows = true;

  TACITURN_AVX2 static void transpose(const RowsOfFloats& from, std::size_t first, std::size_t last,
                                      float weight, float* out) {
    if (from.width < 8 || last - first < 8) {
      return copy_columns<Lanes, together>(from, first, last, weight, out);
    }
    for (std::size_t next = 0; next < from.width; next += 8) {
      const std::size_t k = std::min(next, from.width - 8);  // may overlap the columns before
      __m256 columns[8];
      columns_of_8<true>(from.row(first) + k, from.stride, _mm256_set1_ps(weight), columns);
      for (std::size_t i = 0; i < 8; ++i) _mm256_storeu_ps(out + (k + i) * Lanes, columns[i]);
    }
  }

  // Scores of the items [first, first + 8 · groups) for one user.
  TACITURN_AVX2 static void score_rows(const Catalogue& catalogue, std::size_t first,
                                       std::size_t groups, const float* user, float* scores) {
    const RowsOfFloats &interests = catalogue.interests, &factors = catalogue.factors;
    std::memcpy(scores, catalogue.biases + first, 8 * groups * sizeof(float));
    if (interests.width > 0) add_products<false>(interests, first, groups, 1, user, scores);
    user += interests.width;
    if (catalogue.weight == 1) {
      add_products<false>(factors, first, groups, 1, user, scores);
    } else {
      add_products<true>(factors, first, groups, catalogue.weight, user, scores);
    }
  }
};
using Avx2Tile = VectorTile<8, 6, 2, 8>;
using Avx512Tile = VectorTile<16, 12, 2, 8>;
#endif

// Number of floats of a group of `lanes` items in a panel: their biases, then the entries of their
// vectors.
template <typename Tile>
constexpr std::size_t group_size(std::size_t width) {
  return (1 + width) * Tile::lanes;
}

// Copies the items [first, last) to a panel. Unused lanes of the last group have a bias of −∞, which is
// never recommended.
template <typename Tile>
inline __attribute__((always_inline)) void fill(const Catalogue& catalogue, std::size_t first,
                                                std::size_t last, float* panel) {
  const std::size_t size = group_size<Tile>(catalogue.width());
  for (; first < last; first += Tile::lanes, panel += size) {
    for (std::size_t lane = 0; lane < Tile::lanes; ++lane) {
      panel[lane] = first + lane < last ? catalogue.biases[first + lane] : worst;
    }
    for (std::size_t lane = 0; lane < Tile::lanes; lane += Tile::together) {
      const std::size_t item = std::min(first + lane, last - 1);
      float* out = panel + Tile::lanes + lane;
      Tile::transpose(catalogue.interests, item, last, 1, out);
      out += catalogue.interests.width * Tile::lanes;
      Tile::transpose(catalogue.factors, item, last, catalogue.weight, out);
    }
  }
}

// Scores of the first `Groups` groups of a panel for `Users` users. The scores of the next user follow
// after `stride` floats.
template <typename Tile, std::size_t Users, std::size_t Groups>
inline __attribute__((always_inline)) void score_tile(const float* panel, std::size_t width,
                                                      const float* const* users, float* scores,
                                                      std::size_t stride) {
  using Vector = typename Tile::Vector;
  const std::size_t size = group_size<Tile>(width);
  Vector sums[Users][Groups];
  for (std::size_t g = 0; g < Groups; ++g) {
    for (std::size_t u = 0; u < Users; ++u) sums[u][g] = load<Vector>(panel + g * size);
  }
  for (std::size_t k = 0; k < width; ++k) {
    Vector items[Groups];
    for (std::size_t g = 0; g < Groups; ++g) {
      items[g] = load<Vector>(panel + g * size + (1 + k) * Tile::lanes);
    }
    for (std::size_t u = 0; u < Users; ++u) {
      for (std::size_t g = 0; g < Groups; ++g) sums[u][g] += users[u][k] * items[g];
    }
  }
  for (std::size_t u = 0; u < Users; ++u) {
    for (std::size_t g = 0; g < Groups; ++g) {
      std::memcpy(scores + u * stride + g * Tile::lanes, &sums[u][g], sizeof(Vector));
    }
  }
}

// Scores of all groups of a panel for `Users` users, `Groups` groups at a time.
template <typename Tile, std::size_t Users, std::size_t Groups>
inline __attribute__((always_inline)) void score(const float* panel, std::size_t groups,
                                                 std::size_t width, const float* const* users,
                                                 float* scores, std::size_t stride) {
  const std::size_t size = group_size<Tile>(width);
  std::size_t group = 0;
  for (; group + Groups <= groups; group += Groups) {
    score_tile<Tile, Users, Groups>(panel + group * size, width, users,
                                    scores + group * Tile::lanes, stride);
  }
  for (; group < groups; ++group) {
    score_tile<Tile, Users, 1>(panel + group * size, width, users, scores + group * Tile::lanes,
                               stride);
  }
}

}  // namespace taciturn::panel
