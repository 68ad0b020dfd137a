// Kernels in floating point against obvious references in doubles.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "posterior.hpp"
#include "ridge.hpp"
#include "support.hpp"
#include "top_k.hpp"

namespace test {

namespace {

using Matrix = std::vector<std::vector<double>>;

// Solution X of AX = B by Gaussian elimination without pivoting; A is positive definite.
Matrix solved(Matrix a, Matrix b) {
  const std::size_t n = a.size();
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = a[i][k] / a[k][k];
      for (std::size_t j = k; j < n; ++j) a[i][j] -= factor * a[k][j];
      for (std::size_t j = 0; j < b[i].size(); ++j) b[i][j] -= factor * b[k][j];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (double& each : b[i]) each /= a[i][i];
  }
  return b;
}

std::vector<float> floats(Random& random, std::size_t count) {
  std::vector<float> found(count);
  for (auto& each : found) each = static_cast<float>(random.real());
  return found;
}

bool is_close(double a, double b) { return std::abs(a - b) <= 1e-4 * (1 + std::abs(b)); }

}  // namespace

void test_least_squares(InstructionSet set) {
  for (const std::size_t width : {1, 2, 5, 16, 17, 21, 40, 65}) {
    Random random(width);
    const std::size_t rows = 15, others = 60;
    const Pattern pattern(random, rows, others, 0.3);
    const auto targets = floats(random, pattern.entries());
    const auto counterparts = floats(random, others * width);
    const std::vector<double> by_count(width, 0.05), fixed(width, 0.5);
    const taciturn::Ridge problem{pattern.starts.data(), pattern.columns.data(), targets.data(),
                                  counterparts.data(),   others,                 width,
                                  by_count.data(),       fixed.data()};
    std::vector<float> found(rows * width, 9), inverse(rows * (width - 1) * width, 9);
    taciturn::ridge_rows(problem, 0, rows, found.data(), {width - 1, inverse.data()}, set);
    for (std::size_t row = 0; row < rows; ++row) {
      Matrix system(width, std::vector<double>(width)), right(width, std::vector<double>(1 + width));
      const std::int64_t first = pattern.starts[row], last = pattern.starts[row + 1];
      for (std::int64_t e = first; e < last; ++e) {
        const float* other = counterparts.data() + static_cast<std::size_t>(pattern.columns[e]) * width;
        std::vector<double> f(other, other + width);
        f[0] = 1;
        for (std::size_t i = 0; i < width; ++i) {
          for (std::size_t j = 0; j < width; ++j) system[i][j] += f[i] * f[j];
          right[i][0] += f[i] * (targets[e] - other[0]);
        }
      }
      for (std::size_t i = 0; i < width; ++i) {
        system[i][i] += 0.05 * static_cast<double>(last - first) + 0.5;
        right[i][1 + i] = 1;
      }
      const Matrix exact = solved(system, right);
      for (std::size_t i = 0; i < width; ++i) {
        const double expected = first < last ? exact[i][0] : 0;
        check(is_close(found[row * width + i], expected), "least squares", set);
        for (std::size_t c = 1; c < width && first < last; ++c) {
          const float entry = inverse[(row * (width - 1) + c - 1) * width + i];
          check(is_close(entry, exact[i][1 + c]), "inverse of normal equations", set);
        }
      }
    }
  }
}

void test_posterior(InstructionSet set) {
  for (const std::size_t features : {1, 7, 16, 20}) {
    Random random(features);
    const std::size_t rows = 12, others = 40, unknown = 3, known = 2;
    const std::size_t design = (features + 15) / 16 * 16, width = design + 16;
    const Pattern pattern(random, rows, others, 0.5);
    const auto table = floats(random, others * width);
    std::vector<double> sums(rows * features), noise(features, 0.7), given(rows * known);
    std::vector<double> precision(unknown * unknown), pull(rows * unknown);
    for (auto* each : {&sums, &given, &pull}) {
      for (double& number : *each) number = random.real();
    }
    for (std::size_t i = 0; i < unknown; ++i) precision[i * unknown + i] = 2;
    std::vector<double> means(rows * unknown), variances(rows * unknown), total(unknown * unknown);
    taciturn::posterior_rows({pattern.starts.data(), pattern.columns.data(), table.data(), others,
                              width, features, design, unknown, known, sums.data(), noise.data(),
                              given.data(), precision.data(), pull.data()},
                             0, rows, {means.data(), variances.data(), total.data()}, set);
    std::vector<double> trace(unknown);
    for (std::size_t row = 0; row < rows; ++row) {
      Matrix g(features, std::vector<double>(features));
      Matrix h(features, std::vector<double>(unknown + 1));
      for (std::size_t d = 0; d < features; ++d) {
        g[d][d] = noise[d];
        h[d][unknown] = sums[row * features + d];
      }
      for (std::int64_t e = pattern.starts[row]; e < pattern.starts[row + 1]; ++e) {
        const float* line = table.data() + static_cast<std::size_t>(pattern.columns[e]) * width;
        double offset = 0;
        for (std::size_t c = 0; c < known; ++c) {
          offset += given[row * known + c] * line[design + unknown + c];
        }
        for (std::size_t d = 0; d < features; ++d) {
          for (std::size_t j = 0; j < features; ++j) g[d][j] += double{line[d]} * line[j];
          for (std::size_t i = 0; i < unknown; ++i) h[d][i] += double{line[d]} * line[design + i];
          h[d][unknown] -= line[d] * offset;
        }
      }
      const Matrix inside = solved(g, h);
      Matrix inner(unknown, std::vector<double>(unknown)), right(unknown, std::vector<double>(unknown + 1));
      for (std::size_t i = 0; i < unknown; ++i) {
        for (std::size_t j = 0; j < unknown; ++j) {
          inner[i][j] = precision[i * unknown + j];
          for (std::size_t d = 0; d < features; ++d) inner[i][j] += h[d][i] * inside[d][j];
        }
        right[i][unknown] = pull[row * unknown + i];
        right[i][i] = 1;
        for (std::size_t d = 0; d < features; ++d) right[i][unknown] += h[d][i] * inside[d][unknown];
      }
      const Matrix exact = solved(inner, right);
      for (std::size_t i = 0; i < unknown; ++i) {
        check(is_close(means[row * unknown + i], exact[i][unknown]), "posterior mean", set);
        check(is_close(variances[row * unknown + i], exact[i][i]), "posterior variance", set);
        trace[i] += exact[i][i];
      }
    }
    for (std::size_t i = 0; i < unknown; ++i) {
      check(is_close(total[i * unknown + i], trace[i]), "sum of covariances", set);
    }
  }
}

void test_top_k(InstructionSet set) {
  for (const std::size_t width : {1, 3, 20, 33}) {
    for (const std::size_t users : {1, 2, 13, 30}) {
      Random random(width + users);
      const std::size_t items = 2003, count = 7, interests = users % 2 * 9, stride = width + 2;
      const std::size_t whole = interests + width;
      const float weight = users == 13 ? 0.5f : 1.0f;
      const auto rows = floats(random, users * whole), biases = floats(random, items);
      const auto factors = floats(random, items * stride), vectors = floats(random, items * interests);
      const Pattern excluded(random, users, items, 0.1);
      std::vector<std::int32_t> found(users * count);
      std::vector<float> scores(users * count);
      const taciturn::Catalogue catalogue{{vectors.data(), interests, interests},
                                          {factors.data(), stride, width},
                                          weight, biases.data(), items};
      taciturn::top_k(catalogue, rows.data(), {excluded.starts.data(), excluded.columns.data()}, 0,
                      users, {count, found.data(), scores.data()}, set);
      for (std::size_t user = 0; user < users; ++user) {
        const float* row = rows.data() + user * whole;
        std::vector<double> exact(items);
        for (std::size_t i = 0; i < items; ++i) {
          exact[i] = biases[i];
          for (std::size_t k = 0; k < interests; ++k) {
            exact[i] += double{row[k]} * vectors[i * interests + k];
          }
          for (std::size_t k = 0; k < width; ++k) {
            exact[i] += double{row[interests + k]} * weight * factors[i * stride + k];
          }
        }
        for (std::int64_t e = excluded.starts[user]; e < excluded.starts[user + 1]; ++e) {
          exact[static_cast<std::size_t>(excluded.columns[e])] = -INFINITY;
        }
        std::vector<double> best = exact;
        std::sort(best.begin(), best.end(), std::greater<>());
        for (std::size_t place = 0; place < count; ++place) {
          const std::int32_t item = found[user * count + place];
          if (std::isinf(best[place])) {
            check(item == -1, "no item is left", set);
            continue;
          }
          const bool is_item = item >= 0 && static_cast<std::size_t>(item) < items;
          check(is_item, "an item is listed", set);
          if (!is_item) continue;
          check(is_close(exact[static_cast<std::size_t>(item)], best[place]), "best items", set);
          check(is_close(scores[user * count + place], best[place]), "best scores", set);
        }
      }
    }
  }
}

}  // namespace test
