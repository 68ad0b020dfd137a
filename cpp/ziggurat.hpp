// Integers with Gaussian probabilities, from uniform random words.
//
// A sampler for σ draws k with probability proportional to g(k) = exp(−k²/2σ²), by rejection from
// layers of integers. All of it is integer arithmetic but for the comparison with g(k) in the few
// draws that need one, so the relative error of every point mass can be bounded:
// docs/proofs/sampler.md does, and states the conditions that the constructor's table fulfils.
//
// The numbers drawn are a function of the words alone: the same on every processor, with every
// instruction set.
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

  // Fills out[0, count) from words[0, word_count), word_count ≥ count. Draw i looks at words[i]
  // first; the few that need more take them from words[count] on, in order. Returns how many words
  // were used, or nothing if they did not suffice: call again with more of the same stream.
  std::optional<std::size_t> fill(const std::uint64_t* words, std::size_t word_count,
                                  std::int64_t* out, std::size_t count,
                                  InstructionSet set) const;

  double sigma;
  std::array<std::uint64_t, layers> width;  // layer i proposes 0, …, width[i] − 1
  std::array<std::int64_t, layers> inside;  // k ≤ inside[i] lies under g in all of layer i
  std::array<double, layers> lower;         // height at which layer i begins
  std::array<double, layers> height;        // its height: area / width[i]
  std::uint64_t tail_start;                 // layer 0 proposes k ≥ tail_start through the tail,
  std::uint64_t tail_cell;                  // in cells of this many integers
};

// exp(−w) for w ≥ 0, with the same bits everywhere.
double exp_minus(double w);

}  // namespace taciturn
