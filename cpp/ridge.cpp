#include "ridge.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

namespace tacit {

namespace {

// Solve A z = b in place for a positive definite A of which the lower triangle is given; A becomes
// its Cholesky factor, b the solution. Returns whether there is a unique one.
bool solve(double* a, double* b, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    double* row = a + i * n;
    for (std::size_t j = 0; j < i; ++j) {
      const double* other = a + j * n;
      double sum = row[j];
      for (std::size_t k = 0; k < j; ++k) sum -= row[k] * other[k];
      row[j] = sum / other[j];
    }
    double sum = row[i];
    for (std::size_t k = 0; k < i; ++k) sum -= row[k] * row[k];
    if (!(sum > 0)) return false;
    row[i] = std::sqrt(sum);
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= a[i * n + k] * b[k];
    b[i] /= a[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[k * n + i] * b[k];
    b[i] /= a[i * n + i];
  }
  return true;
}

}  // namespace

void ridge_rows(const Ridge& problem, std::size_t begin, std::size_t end, float* out) {
  const std::size_t width = problem.width;
  std::vector<double> matrix(width * width), right(width), feature(width);
  for (std::size_t row = begin; row < end; ++row) {
    const std::int64_t first = problem.starts[row], last = problem.starts[row + 1];
    float* solution = out + row * width;
    std::fill_n(solution, width, 0.0f);
    if (first == last) continue;
    std::fill(matrix.begin(), matrix.end(), 0.0);
    std::fill(right.begin(), right.end(), 0.0);
    for (std::int64_t entry = first; entry < last; ++entry) {
      const auto column = static_cast<std::uint32_t>(problem.columns[entry]);
      if (column >= problem.feature_rows) throw std::out_of_range("a column has no features");
      std::copy_n(problem.features + column * width, width, feature.begin());
      const double target = problem.targets[entry];
      for (std::size_t i = 0; i < width; ++i) {
        const double factor = feature[i];
        right[i] += factor * target;
        double* line = matrix.data() + i * width;
        for (std::size_t j = 0; j <= i; ++j) line[j] += factor * feature[j];
      }
    }
    for (std::size_t i = 0; i < width; ++i) {
      matrix[i * width + i] +=
          static_cast<double>(last - first) * problem.weighted[i] + problem.fixed[i];
    }
    // An error would depend on the ratings of a row.
    if (solve(matrix.data(), right.data(), width)) std::copy_n(right.begin(), width, solution);
  }
}

}  // namespace tacit
