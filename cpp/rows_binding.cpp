// Python bindings of steps on the ratings of each row.
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>

#include <array>
#include <utility>

#include "bindings.hpp"
#include "rows.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace taciturn::bindings {

namespace {

void pattern_products(Vector<const std::int64_t> starts, Vector<const std::int32_t> columns,
                      Vector<const double> values, Vector<double> out, std::size_t begin,
                      std::size_t end) {
  require(starts.size() == out.size() + 1, "starts must have one entry more than out");
  require_rows(starts, begin, end, columns.size());
  const auto set = taciturn::instruction_set();
  nb::gil_scoped_release released;
  taciturn::pattern_products(starts.data(), columns.data(), values.data(), values.size(), begin, end,
                             out.data(), set);
}

template <typename Value>
Tabulated<Value> function(const Vector<const Value>& values, std::int64_t lowest) {
  require(values.size() > 0, "the table is empty");
  return {values.data(), values.size(), lowest};
}

template <typename Key, typename Value>
void tabulate(Vector<const Key> keys, Vector<const Value> values, std::int64_t lowest,
              Vector<Value> out, std::size_t begin, std::size_t end) {
  require(keys.size() == out.size(), "keys and out differ in length");
  require(begin <= end && end <= out.size(), "numbers out of range");
  const auto tabulated = function(values, lowest);
  nb::gil_scoped_release released;
  taciturn::tabulate(keys.data(), tabulated, begin, end, out.data());
}

void tabulated_sums(Vector<const std::int64_t> starts, Vector<const std::int32_t> keys,
                    Vector<const std::int64_t> values, std::int64_t lowest,
                    Vector<std::int64_t> out, std::size_t begin, std::size_t end) {
  require(starts.size() == out.size() + 1, "starts must have one entry more than out");
  require_rows(starts, begin, end, keys.size());
  const auto tabulated = function(values, lowest);
  nb::gil_scoped_release released;
  taciturn::tabulated_sums(starts.data(), keys.data(), tabulated, begin, end, out.data());
}

void add_covariances(Matrix<const float> columns, Vector<const double> weights,
                     Vector<const double> scales, std::int64_t one, std::int64_t bound,
                     Vector<std::int64_t> total, std::size_t begin, std::size_t end) {
  const std::size_t width = columns.shape(1);
  require(weights.size() == columns.shape(0), "pass one weight for each row");
  require(scales.size() == width && total.size() == width + 1,
          "scales and total do not match the columns");
  // Then no sum of squares overflows.
  require(one > 0 && one <= std::int64_t{1} << 24 && bound >= 0 && bound <= std::int64_t{1} << 61,
          "numbers in steps are too large");
  require(begin <= end && end <= weights.size(), "rows out of range");
  const auto set = taciturn::instruction_set();
  nb::gil_scoped_release released;
  taciturn::add_covariances({columns.data(), weights.data(), scales.data(), width, one, bound}, begin,
                            end, total.data(), set);
}

void descend_rows(Matrix<const double> inward, Matrix<const double> whitening,
                  Matrix<const double> outward, Vector<const double> eigenvalues,
                  Vector<const double> noise, std::array<double, 3> constants,
                  std::array<Matrix<const double>, 3> tables,
                  std::array<Vector<const double>, 3> by_row, Matrix<double> out,
                  std::pair<std::size_t, std::size_t> ends) {
  const std::size_t rows = out.shape(0), width = out.shape(1);
  for (const auto& matrix : {inward, whitening, outward}) {
    require(matrix.shape(0) == width && matrix.shape(1) == width, "matrices must be square");
  }
  require(eigenvalues.size() == width && noise.size() == width, "pass one number for each column");
  for (const auto& table : tables) {
    require(table.shape(0) == rows && table.shape(1) == width, "tables differ in shape");
  }
  for (const auto& each : by_row) require(each.size() == rows, "pass one number for each row");
  require(ends.first <= ends.second && ends.second <= rows, "rows out of range");
  const auto set = taciturn::instruction_set();
  nb::gil_scoped_release released;
  taciturn::descend_rows(
      {width, inward.data(), whitening.data(), outward.data(), eigenvalues.data(), noise.data(),
       constants[0], constants[1], constants[2], tables[0].data(), tables[1].data(),
       tables[2].data(), by_row[0].data(), by_row[1].data(), by_row[2].data()},
      ends.first, ends.second, out.data(), set);
}

template <typename Key, typename Value>
void bind_tabulate(nb::module_& module) {
  module.def("tabulate", &tabulate<Key, Value>, "keys"_a.noconvert(), "values"_a.noconvert(),
             "lowest"_a, "out"_a.noconvert(), "begin"_a, "end"_a,
             "Function of whole numbers, given its values from `lowest` on; keys are clipped.");
}

}  // namespace

void bind_rows(nb::module_& module) {
  module.def("pattern_products", &pattern_products, "starts"_a, "columns"_a, "values"_a,
             "out"_a.noconvert(), "begin"_a, "end"_a,
             "Sum over the entries of each row of the value of their column.");
  bind_tabulate<std::uint8_t, std::int32_t>(module);
  bind_tabulate<std::uint16_t, std::int32_t>(module);
  bind_tabulate<std::int32_t, std::int32_t>(module);
  bind_tabulate<std::int32_t, float>(module);
  module.def("tabulated_sums", &tabulated_sums, "starts"_a, "keys"_a, "values"_a, "lowest"_a,
             "out"_a.noconvert(), "begin"_a, "end"_a,
             "Sum of a function of whole numbers over the entries of each row.");
  module.def("add_covariances", &add_covariances, "columns"_a, "weights"_a, "scales"_a, "one"_a,
             "bound"_a, "total"_a.noconvert(), "begin"_a, "end"_a,
             "Add bounded posterior covariances of users in steps.");
  module.def("descend_rows", &descend_rows, "inward"_a, "whitening"_a, "outward"_a,
             "eigenvalues"_a, "noise"_a, "constants"_a, "tables"_a, "by_row"_a,
             "out"_a.noconvert(), "ends"_a, "Rows after one step of descent.");
}

}  // namespace taciturn::bindings
