// Sums of prediction error × feature by row, in floats: one gradient of the squared error. The same
// function computes the other gradient from the transposed ratings. Results do not depend on how rows
// are divided among threads; their last bits depend on the instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu.hpp"

namespace taciturn {

// Users or items. The prediction of a rating is (scale · scale') · ⟨features, features'⟩.
struct FloatAxis {
  const float* features;  // rows × stride, padded with zeros; norms of at most 1
  const float* scales;
  std::size_t rows;
};

struct FloatPass {
  const std::int64_t* starts;   // compressed sparse rows
  const std::int32_t* columns;  // rows of the counterparts
  const std::int32_t* values;   // in steps
  float step;
  float limit;         // prediction errors are clipped to ± limit
  std::size_t stride;  // float_stride() of the width
};

struct FloatOutput {
  std::size_t width;     // at most the stride
  double inverse_step;   // sums are rounded to multiples of 1 / inverse_step
  std::int64_t* sums;    // rows × width, stored, in steps
  double* squares;       // rows, stored
};

// Number of columns to which feature rows of a width are padded.
std::size_t float_stride(std::size_t width, InstructionSet set) noexcept;

// For the rows in [begin, end), with e = clip(prediction − step · value, ± limit):
//   sums[row] = Σ e · counterparts.features[column],    squares[row] = Σ e²
// Throws if a column index is out of range.
void float_sums(const FloatPass& pass, const FloatAxis& rows, const FloatAxis& counterparts,
                std::size_t begin, std::size_t end, const FloatOutput& out, InstructionSet set);

// Profiles of rows, divided by their scale: their norm, or `bound` if that is larger.
struct FloatRows {
  const double* profiles;  // rows × width
  std::size_t width;
  std::size_t stride;
  double bound;
};

// Writes features and scales of the rows in [begin, end). Returns false if a row is not finite or
// longer than `longest`; its features are zero.
bool float_rows(const FloatRows& rows, std::size_t begin, std::size_t end, float* features,
                float* scales, InstructionSet set);
constexpr double longest = 1e30;

}  // namespace taciturn
