// Steps on the ratings of each row: products with the rating pattern, and functions of a value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cpu.hpp"

namespace taciturn {

// out[row] = Σ values[columns[e]] over the entries e of each row in [begin, end). The order of the sum
// depends on nothing but the number of entries, so the bits are the same on every instruction set and
// for any other rows. Throws if a column index is out of range.
void pattern_products(const std::int64_t* starts, const std::int32_t* columns, const double* values,
                      std::size_t count, std::size_t begin, std::size_t end, double* out,
                      InstructionSet set);

// A function of whole numbers: its values for `lowest` and the numbers that follow. Other numbers are
// clipped to these.
template <typename Value>
struct Tabulated {
  const Value* values;
  std::size_t count;
  std::int64_t lowest;

  Value operator()(std::int64_t key) const {
    return values[std::clamp<std::int64_t>(key - lowest, 0, static_cast<std::int64_t>(count) - 1)];
  }
};

// out[i] = function(keys[i]) for i in [begin, end).
template <typename Key, typename Value>
void tabulate(const Key* keys, Tabulated<Value> function, std::size_t begin, std::size_t end,
              Value* out) {
  for (std::size_t i = begin; i < end; ++i) out[i] = function(keys[i]);
}

// out[row] = Σ function(keys[e]) over the entries of each row in [begin, end), in exact integers. The
// caller must exclude overflow.
inline void tabulated_sums(const std::int64_t* starts, const std::int32_t* keys,
                           Tabulated<std::int64_t> function, std::size_t begin, std::size_t end,
                           std::int64_t* out) {
  for (std::size_t row = begin; row < end; ++row) {
    std::int64_t sum = 0;
    for (std::int64_t entry = starts[row]; entry < starts[row + 1]; ++entry) {
      sum += function(keys[entry]);
    }
    out[row] = sum;
  }
}

// Users' posterior covariances in steps, each row bounded on its own.
struct Covariances {
  const float* columns;   // rows × width
  const double* weights;  // rows
  const double* scales;   // width: multiplies a column, as does the weight
  std::size_t width;
  std::int64_t one;    // steps of the number 1
  std::int64_t bound;  // largest sum of squares of a row, in squared steps
};

// Adds Σ (w, w · scaled column), truncated to steps, over the rows in [begin, end) to total (1 + width).
// A number above 1 in absolute value, or that is not a number, becomes zero, and so does a row whose
// sum of squares exceeds the bound. `one` is at most 2^24, and the bound at most 2^61.
void add_covariances(const Covariances& given, std::size_t begin, std::size_t end,
                     std::int64_t* total, InstructionSet set);

// One step of descent on rows x, in coordinates in which prior and curvature are diagonal. With
//   bend = count · eigenvalue,  added = precision · times · (weight · residual + noise / bend),
// out = x − step · ((gradient · inward + added · (x − centre) · whitening) / (bend + added)) · outward,
// where products are with matrices (width × width) and the rest is by element.
struct DescentStep {
  std::size_t width;
  const double* inward;
  const double* whitening;
  const double* outward;
  const double* eigenvalues;  // width
  const double* noise;        // width
  double times, residual, step;
  const double* rows;  // rows × width, as are gradient and centre
  const double* gradient;
  const double* centre;
  const double* counts;     // rows, as are weights and precisions
  const double* weights;
  const double* precisions;
};

// Writes rows [begin, end) of out (rows × width). The bits of a row depend on that row alone, and are
// the same on every instruction set.
void descend_rows(const DescentStep& given, std::size_t begin, std::size_t end, double* out,
                  InstructionSet set);

}  // namespace taciturn
