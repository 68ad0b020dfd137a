// Exact kernels against obvious loops: all numbers must be equal.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "error_sums.hpp"
#include "grid_sums.hpp"
#include "pack.hpp"
#include "support.hpp"
#include "ziggurat.hpp"

namespace test {

namespace {

__extension__ using Wide = unsigned __int128;

// Whether the first word decides a draw, and what it proposes.
bool proposed(const taciturn::Ziggurat& table, std::uint64_t word, std::int64_t& draw) {
  const std::uint64_t uniform = word & ((std::uint64_t{1} << 52) - 1);
  const auto layer = static_cast<std::size_t>(word >> 52 & (taciturn::Ziggurat::layers - 1));
  const Wide product = Wide{uniform} * table.width[layer];
  const auto magnitude = static_cast<std::int64_t>(product >> 52);
  const auto fraction = static_cast<std::uint64_t>(product) & ((std::uint64_t{1} << 52) - 1);
  const bool negative = word >> 63 != 0;
  draw = negative ? -magnitude : magnitude;
  return magnitude <= table.inside[layer] && fraction >= table.width[layer] &&
         !(negative && magnitude == 0);
}

std::vector<std::int16_t> random_features(Random& random, std::size_t rows, std::size_t width,
                                          std::size_t stride, bool whole_norm) {
  std::vector<std::int16_t> found(rows * stride);
  for (std::size_t row = 0; row < rows; ++row) {
    double squares = 0;
    std::vector<double> reals(width);
    for (double& each : reals) {
      each = random.real();
      squares += each * each;
    }
    const double norm = taciturn::ErrorPass::norm * (whole_norm ? 1 : (random.real() + 1) / 2);
    for (std::size_t k = 0; k < width; ++k) {
      found[row * stride + k] = static_cast<std::int16_t>(reals[k] / std::sqrt(squares) * norm);
    }
  }
  return found;
}

struct Sums {
  std::vector<std::int64_t> rows, columns, squares;
  bool operator==(const Sums&) const = default;
};

// The definition in error_sums.hpp, rating by rating.
Sums expected_sums(const taciturn::ErrorPass& pass, const taciturn::Axis& rows,
                   const taciturn::Axis& columns, std::size_t width) {
  Sums found{std::vector<std::int64_t>(rows.rows * width),
             std::vector<std::int64_t>(columns.rows * width), std::vector<std::int64_t>(rows.rows)};
  for (std::size_t row = 0; row < rows.rows; ++row) {
    for (std::int64_t entry = pass.starts[row]; entry < pass.starts[row + 1]; ++entry) {
      const auto column = static_cast<std::size_t>(pass.columns[entry]);
      const std::int16_t* own = rows.features + row * pass.stride;
      const std::int16_t* other = columns.features + column * pass.stride;
      std::int32_t product = 0;
      for (std::size_t k = pass.first; k < width; ++k) product += own[k] * other[k];
      const float *a = rows.lines + 2 * row, *b = columns.lines + 2 * column;
      const float prediction = (a[0] + b[0]) + (a[1] * b[1]) * static_cast<float>(product);
      const auto floor = static_cast<float>(pass.floor), ceiling = static_cast<float>(pass.ceiling);
      const float inside = std::min(prediction > floor ? prediction : floor, ceiling);
      const auto rounded = static_cast<std::int32_t>(std::nearbyint(inside));
      const std::int32_t value = std::clamp(pass.values[entry], pass.lowest, pass.highest);
      const std::int32_t error = std::clamp(rounded - value, -pass.threshold, pass.threshold);
      std::int64_t of_row = error, of_column = error;
      if (pass.weights) {
        const std::size_t place = pass.weights->rows[row] * taciturn::PairWeights::classes +
                                  pass.weights->columns[column];
        of_row = taciturn::weighted_error(error, pass.weights->of_rows[place]);
        of_column = taciturn::weighted_error(error, pass.weights->of_columns[place]);
      }
      for (std::size_t k = 0; k < width; ++k) {
        found.rows[row * width + k] += of_row * other[k];
        found.columns[column * width + k] += of_column * own[k];
      }
      found.squares[row] += std::int64_t{error} * error;
    }
  }
  return found;
}

struct ErrorCase {
  std::size_t width, first;
  std::int32_t range, threshold;
  double spread;  // of predictions, in ranges
  bool weighted, whole_norm;
  std::size_t rows, columns;
  double density;
};

void test_error_case(const ErrorCase& given, std::uint64_t seed, InstructionSet set) {
  Random random(seed);
  const Pattern pattern(random, given.rows, given.columns, given.density);
  std::vector<std::int32_t> values(pattern.entries());
  // Some values lie outside of their range.
  for (auto& each : values) {
    each = static_cast<std::int32_t>(random.whole(-2 * given.range, 2 * given.range));
  }
  const std::size_t stride = (given.width + 31) / 32 * 32;
  const auto of_rows = random_features(random, given.rows, given.width, stride, given.whole_norm);
  const auto of_columns =
      random_features(random, given.columns, given.width, stride, given.whole_norm);
  const auto lines = [&](std::size_t count) {
    std::vector<float> found;
    for (std::size_t i = 0; i < count; ++i) {
      found.push_back(static_cast<float>(random.real() * given.spread * given.range));
      found.push_back(static_cast<float>(random.real() * given.spread * given.range * 0x1p-20));
    }
    if (count > 2) found[2] = NAN;
    return found;
  };
  const auto row_lines = lines(given.rows), column_lines = lines(given.columns);
  static taciturn::PairWeights weights;
  std::vector<std::uint8_t> row_classes(given.rows), column_classes(given.columns);
  for (auto& each : row_classes) each = static_cast<std::uint8_t>(random.whole(0, 63));
  for (auto& each : column_classes) each = static_cast<std::uint8_t>(random.whole(0, 63));
  weights.rows = row_classes.data();
  weights.columns = column_classes.data();
  for (auto& each : weights.of_rows) each = static_cast<std::int16_t>(random.whole(0, 1 << 14));
  for (auto& each : weights.of_columns) each = static_cast<std::int16_t>(random.whole(0, 1 << 14));
  const taciturn::ErrorPass pass{pattern.starts.data(), pattern.columns.data(), values.data(),
                                 -given.range,          given.range,            -2 * given.range,
                                 2 * given.range,       stride,                 given.first,
                                 given.threshold,       given.weighted ? &weights : nullptr};
  const taciturn::Axis rows{of_rows.data(), row_lines.data(), given.rows};
  const taciturn::Axis columns{of_columns.data(), column_lines.data(), given.columns};
  const Sums expected = expected_sums(pass, rows, columns, given.width);
  Sums found{std::vector<std::int64_t>(expected.rows.size(), 7),
             std::vector<std::int64_t>(expected.columns.size()),
             std::vector<std::int64_t>(expected.squares.size(), 7)};
  const taciturn::ErrorOutput out{given.width, found.rows.data(), found.columns.data(),
                                  found.squares.data()};
  const std::size_t middle = given.rows / 3;
  taciturn::error_sums(pass, rows, columns, 0, middle, out, set);
  taciturn::error_sums(pass, rows, columns, middle, given.rows, out, set);
  check(found == expected, "sums of prediction errors, width " + std::to_string(given.width), set);
}

// All features, errors and signs the largest: 32-bit sums overflow unless they are emptied in time.
void test_largest_errors(InstructionSet set) {
  constexpr std::size_t rows = 60, columns = 700;
  Random random(5);
  const Pattern pattern(random, rows, columns, 0.8);
  const std::vector<std::int32_t> values(pattern.entries(), -4096);
  std::vector<std::int16_t> features(columns * 32);
  for (std::size_t row = 0; row < columns; ++row) features[row * 32] = taciturn::ErrorPass::norm;
  std::vector<float> lines(2 * columns);
  for (std::size_t row = 0; row < columns; ++row) lines[2 * row] = 10'000;
  const taciturn::ErrorPass pass{pattern.starts.data(), pattern.columns.data(), values.data(),
                                 -4096, 4096, -4096, 4096, 32, 0, 8192};
  const taciturn::Axis of_rows{features.data(), lines.data(), rows};
  const taciturn::Axis of_columns{features.data(), lines.data(), columns};
  const Sums expected = expected_sums(pass, of_rows, of_columns, 1);
  Sums found{std::vector<std::int64_t>(rows), std::vector<std::int64_t>(columns),
             std::vector<std::int64_t>(rows)};
  taciturn::error_sums(pass, of_rows, of_columns, 0, rows,
                       {1, found.rows.data(), found.columns.data(), found.squares.data()}, set);
  check(found == expected, "sums of the largest prediction errors", set);
}

}  // namespace

void test_sampler(InstructionSet set) {
  for (const double sigma : {0x1p20, 12345678.9, 0x1.8p33, 0x1p48}) {
    const taciturn::Ziggurat table(sigma);
    Random random(1);
    const std::size_t count = 20'003;
    std::vector<std::uint64_t> words(2 * count);
    for (auto& each : words) each = random.word();
    // Uniforms at both ends, and near the boundaries of carries between halves of 26 bits.
    for (std::size_t i = 0; i < 4096; ++i) {
      const std::uint64_t ends[] = {0, ~std::uint64_t{0} >> 12, (1 << 26) - 1, 1 << 26};
      words[i] = (words[i] & ~((std::uint64_t{1} << 52) - 1)) | ends[i % 4];
    }
    std::vector<std::int64_t> found(count);
    const auto used = table.fill(words.data(), words.size(), found.data(), count, set);
    check(used.has_value(), "the sampler had enough words", set);
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t draw = 0;
      if (proposed(table, words[i], draw)) check(found[i] == draw, "draw of one word", set);
    }
    std::vector<std::int64_t> portable(count);
    const auto other = table.fill(words.data(), words.size(), portable.data(), count,
                                  InstructionSet::portable);
    check(other == used && portable == found, "draws as on the portable path", set);
  }
}

void test_packing(InstructionSet set) {
  Random random(2);
  for (const std::size_t width : {1, 3, 7, 8, 9, 16, 21, 64, 65}) {
    const std::size_t rows = 40, stride = (width + 31) / 32 * 32;
    std::vector<double> features(rows * width), factors(rows);
    for (auto& each : features) each = random.real() * std::exp2(random.whole(-6, 6));
    for (auto& each : factors) each = random.real();
    std::vector<std::int16_t> found(rows * stride, 9), portable(rows * stride, 5);
    const auto pack = [&](std::vector<std::int16_t>& out, InstructionSet which) {
      return taciturn::pack_rows(features.data(), factors.data(), width, stride,
                                 taciturn::ErrorPass::norm, 0, rows, out.data(), which);
    };
    check(pack(found, set) && pack(portable, InstructionSet::portable), "rows are finite", set);
    check(found == portable, "packed rows as on the portable path", set);
    for (std::size_t row = 0; row < rows; ++row) {
      std::int64_t squares = 0;
      double norm = 0;
      for (std::size_t k = 0; k < width; ++k) norm += std::pow(features[row * width + k], 2);
      norm = std::sqrt(norm) * std::abs(factors[row]);
      for (std::size_t k = 0; k < stride; ++k) {
        const std::int64_t step = found[row * stride + k];
        squares += step * step;
        const double exact = k < width ? features[row * width + k] * factors[row] /
                                             std::max(1.0, norm) * taciturn::ErrorPass::norm
                                       : 0;
        check(std::abs(static_cast<double>(step) - exact) <= 1, "packed entry", set);
      }
      check(squares <= std::int64_t{1} << 28, "norm of a packed row", set);
    }
  }
}

void test_error_sums(InstructionSet set) {
  std::uint64_t seed = 10;
  for (const std::size_t width : {1, 4, 8, 9, 16, 17, 20, 21, 24, 25, 32, 33, 40, 41, 64, 65, 80, 130}) {
    for (const bool weighted : {false, true}) {
      test_error_case({width, 0, 64, 100, 1.0, weighted, false, 23, 90, 0.5}, ++seed, set);
      // Long rows of the largest features and errors: 32-bit sums would overflow.
      test_error_case({width, 0, 4096, 30'000, 4.0, weighted, true, 9, 700, 0.9}, ++seed, set);
    }
  }
  test_largest_errors(set);
  test_error_case({40, 32, 64, 50, 1.0, false, false, 20, 50, 0.5}, ++seed, set);
  test_error_case({21, 1, 10'000, 32'767, 3.0, true, false, 20, 50, 0.5}, ++seed, set);
}

void test_grid_sums(InstructionSet set) {
  Random random(3);
  for (const std::size_t width : {1, 3, 8, 21, 33}) {
    const Pattern pattern(random, 30, 50, 0.4);
    std::vector<std::int32_t> values(pattern.entries()), features(50 * width);
    for (auto& each : values) each = static_cast<std::int32_t>(random.whole(-5000, 5000));
    for (auto& each : features) each = static_cast<std::int32_t>(random.whole(-(1 << 30), 1 << 30));
    std::vector<std::int64_t> found(30 * width, 3), expected(30 * width);
    for (std::size_t row = 0; row < 30; ++row) {
      for (std::int64_t e = pattern.starts[row]; e < pattern.starts[row + 1]; ++e) {
        for (std::size_t k = 0; k < width; ++k) {
          expected[row * width + k] +=
              std::int64_t{std::clamp(values[e], -3000, 4000)} *
              features[static_cast<std::size_t>(pattern.columns[e]) * width + k];
        }
      }
    }
    taciturn::grid_sums(pattern.starts.data(), pattern.columns.data(), {values.data(), -3000, 4000},
                        {features.data(), 50, width}, 0, 30, found.data(), set);
    check(found == expected, "sums on a grid", set);
  }
}

}  // namespace test
