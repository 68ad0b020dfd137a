// Python binding of the pass over prediction errors.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

#include "bindings.hpp"
#include "error_sums.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace taciturn::bindings {

namespace {

// Features and lines of one axis.
Axis axis(const Matrix<const std::int16_t>& features, const Matrix<const float>& lines) {
  require(features.shape(0) == lines.shape(0) && lines.shape(1) == 2,
          "features and lines differ in length");
  return {features.data(), lines.data(), features.shape(0)};
}

// Classes of rows and columns, and weights of the terms in the sums of both.
using WeightArrays = std::tuple<Vector<const std::uint8_t>, Vector<const std::uint8_t>,
                                Matrix<const std::int32_t>, Matrix<const std::int32_t>>;

void require_classes(const Vector<const std::uint8_t>& classes, std::size_t rows) {
  require(classes.size() == rows, "pass one class for each row of features");
  require(std::all_of(classes.data(), classes.data() + rows,
                      [](std::uint8_t each) { return each < PairWeights::classes; }),
          "a class is out of range");
}

PairWeights::Table weight_table(const Matrix<const std::int32_t>& weights) {
  require(weights.shape(0) == PairWeights::classes && weights.shape(1) == PairWeights::classes,
          "weights must have one row and one column for each class");
  PairWeights::Table table;
  for (std::size_t place = 0; place < table.size(); ++place) {
    const std::int32_t weight = weights.data()[place];
    require(0 <= weight && weight <= PairWeights::one, "a weight is out of range");
    table[place] = static_cast<std::int16_t>(weight);
  }
  return table;
}

PairWeights pair_weights(const WeightArrays& arrays, std::size_t rows, std::size_t columns) {
  const auto& [of_row, of_column, row_weights, column_weights] = arrays;
  require_classes(of_row, rows);
  require_classes(of_column, columns);
  return {of_row.data(), of_column.data(), weight_table(row_weights),
          weight_table(column_weights)};
}

void error_sums(Vector<const std::int64_t> starts, Vector<const std::int32_t> columns,
                Vector<const std::int32_t> values, std::array<std::int32_t, 2> value_range,
                std::array<std::int32_t, 2> prediction_range, std::size_t first,
                std::int32_t threshold, Matrix<const std::int16_t> row_features,
                Matrix<const float> row_lines, Matrix<const std::int16_t> column_features,
                Matrix<const float> column_lines, Matrix<std::int64_t> row_sums,
                Matrix<std::int64_t> column_sums, Vector<std::int64_t> squares, std::size_t begin,
                std::size_t end, const std::optional<WeightArrays>& weights) {
  const std::size_t stride = row_features.shape(1), width = row_sums.shape(1);
  const auto rows = axis(row_features, row_lines);
  const auto others = axis(column_features, column_lines);
  require(columns.size() == values.size(), "columns and values differ in length");
  require(rows.rows + 1 == starts.size(), "starts must have one entry more than there are rows");
  require(stride > 0 && stride % 32 == 0 && stride <= ErrorPass::stride_max,
          "features must be padded to a multiple of 32 columns");
  require(first <= std::min<std::size_t>(32, width), "predictions skip too many columns");
  require(column_features.shape(1) == stride && column_sums.shape(1) == width && width <= stride &&
              stride - width < 32,
          "features and sums differ in width");
  require(row_sums.shape(0) == rows.rows && squares.size() == rows.rows &&
              column_sums.shape(0) == others.rows,
          "features and sums differ in length");
  require_rows(starts, begin, end, columns.size());
  const auto set = taciturn::instruction_set();
  std::optional<PairWeights> checked;
  if (weights) checked = pair_weights(*weights, rows.rows, others.rows);
  const ErrorPass pass{starts.data(),       columns.data(), values.data(),
                       value_range[0],      value_range[1], prediction_range[0],
                       prediction_range[1], stride,         first,
                       threshold,           checked ? &*checked : nullptr};
  require(threshold > 0, "the clipping threshold must be positive");
  require(pass.lowest <= pass.highest && pass.floor <= pass.ceiling, "a range is empty");
  constexpr std::int32_t most = 1 << 30;
  require(-most <= pass.lowest && pass.highest <= most, "the range of values is too far from zero");
  require(pass.largest() <= ErrorPass::error_max, "a prediction error could exceed 15 bits");
  require(std::max(-std::int64_t{pass.floor}, std::int64_t{pass.ceiling}) <=
              ErrorPass::prediction_max,
          "the range of predictions is too far from zero");
  nb::gil_scoped_release released;
  taciturn::error_sums(pass, rows, others, begin, end,
                       {width, row_sums.data(), column_sums.data(), squares.data()}, set);
}

}  // namespace

void bind_error_sums(nb::module_& module) {
  module.def("error_sums", &error_sums, "starts"_a, "columns"_a, "values"_a,
             "value_range"_a, "prediction_range"_a, "first"_a, "threshold"_a, "row_features"_a,
             "row_lines"_a, "column_features"_a, "column_lines"_a,
             "row_sums"_a.noconvert(), "column_sums"_a.noconvert(), "squares"_a.noconvert(),
             "begin"_a, "end"_a, "weights"_a.noconvert() = nb::none(),
             "Exact sums of prediction error times feature, by row and by column.");
  module.attr("FEATURE_NORM") = ErrorPass::norm;
  module.attr("PREDICTION_MAX") = ErrorPass::prediction_max;
  module.attr("ERROR_MAX") = ErrorPass::error_max;
}

}  // namespace taciturn::bindings
