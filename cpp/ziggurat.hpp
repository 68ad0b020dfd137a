// Sampler of the discrete Gaussian distribution, from uniform random words.
//
// It draws k with probability proportional to g(k) = exp(−k²/2σ²), by rejection from layers of integers.
// All arithmetic is in integers, except the comparison with g(k) that a few draws need, so the relative
// error of every point mass can be bounded. docs/proofs/sampler.md proves the bound and states the
// conditions on the constructor's table.
//
// The drawn numbers depend only on the words: they are the same on every processor and instruction set.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "cpu.hpp"

namespace taciturn {

class Ziggurat {
 public:
  static constexpr int layers = 512;
  static constexpr double sigma_min = 0x1p20;
  static constexpr double sigma_max = 0x1p48;

  // Throws std::invalid_argument unless sigma_min ≤ sigma ≤ sigma_max.
  explicit Ziggurat(double sigma);

  // Fills out[0, count) from words[0, word_count), word_count ≥ count. Draw i reads words[i]
  // first; the few draws that need more words read them from words[count] onwards, in order. Returns the
  // number of words used, or nothing if there were too few: call again with more of the same stream.
  std::optional<std::size_t> fill(const std::uint64_t* words, std::size_t word_count,
                                  std::int64_t* out, std::size_t count,
                                  InstructionSet set) const;

  double sigma;
  std::array<std::uint64_t, layers> width;  // layer i proposes 0, …, width[i] − 1
  std::array<std::int64_t, layers> inside;  // every k ≤ inside[i] of layer i is accepted
  std::array<double, layers> lower;         // bottom of layer i
  std::array<double, layers> height;        // its height: area / width[i]
  std::uint64_t tail_start;                 // layer 0 proposes k ≥ tail_start through the tail,
  std::uint64_t tail_cell;                  // in cells of this many integers
};

// exp(−w) for w ≥ 0, with the same bits on every machine.
double exp_minus(double w);

}  // namespace taciturn
