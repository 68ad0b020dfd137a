// Random inputs and checks for the test program of the kernels.
#pragma once

#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cpu.hpp"

namespace test {

using taciturn::InstructionSet;

// SplitMix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t word() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  // Uniform in [lowest, highest].
  std::int64_t whole(std::int64_t lowest, std::int64_t highest) {
    return lowest + static_cast<std::int64_t>(word() % static_cast<std::uint64_t>(highest - lowest + 1));
  }

  // Uniform in [−1, 1).
  double real() { return static_cast<double>(word() >> 11) * 0x1p-52 - 1; }

 private:
  std::uint64_t state_;
};

// Rated pairs in compressed rows.
struct Pattern {
  std::vector<std::int64_t> starts{0};
  std::vector<std::int32_t> columns;
  std::size_t width;

  Pattern(Random& random, std::size_t rows, std::size_t width, double density) : width(width) {
    for (std::size_t row = 0; row < rows; ++row) {
      // Some rows are empty and some are full.
      const double mine = row % 7 == 3 ? 0 : row % 7 == 5 ? 1 : density;
      for (std::size_t column = 0; column < width; ++column) {
        if ((random.real() + 1) / 2 < mine) columns.push_back(static_cast<std::int32_t>(column));
      }
      starts.push_back(static_cast<std::int64_t>(columns.size()));
    }
  }

  std::size_t rows() const { return starts.size() - 1; }
  std::size_t entries() const { return columns.size(); }
};

inline int failures = 0;

// Reports a check that failed, once for each name and instruction set.
inline void check(bool holds, const std::string& what, InstructionSet set) {
  static std::set<std::pair<InstructionSet, std::string>> reported;
  if (holds) return;
  ++failures;
  if (!reported.emplace(set, what).second) return;
  std::printf("FAILED  %s  %s\n", std::string(name(set)).c_str(), what.c_str());
}

void test_sampler(InstructionSet set);
void test_packing(InstructionSet set);
void test_error_sums(InstructionSet set);
void test_grid_sums(InstructionSet set);
void test_least_squares(InstructionSet set);
void test_posterior(InstructionSet set);
void test_top_k(InstructionSet set);
void test_missing_instructions();

}  // namespace test
