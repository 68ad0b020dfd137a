// Python binding of the pass in floats.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "bindings.hpp"
#include "float_pass.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace taciturn::bindings {

namespace {

FloatAxis axis(const Matrix<const float>& features, const Vector<const float>& scales,
               std::size_t stride) {
  require(features.shape(1) == stride, "features must be padded to the stride of their width");
  require(features.shape(0) == scales.size(), "features and scales differ in length");
  return {features.data(), scales.data(), features.shape(0)};
}

void float_sums(Vector<const std::int64_t> starts, Vector<const std::int32_t> columns,
                Vector<const std::int32_t> values, float step, float limit,
                Matrix<const float> features, Vector<const float> scales,
                Matrix<const float> other_features, Vector<const float> other_scales,
                double inverse_step, Matrix<std::int64_t> sums, Vector<double> squares,
                std::size_t begin, std::size_t end) {
  const auto set = taciturn::instruction_set();
  const std::size_t width = sums.shape(1), stride = float_stride(width, set);
  const FloatAxis rows = axis(features, scales, stride);
  const FloatAxis counterparts = axis(other_features, other_scales, stride);
  require(width > 0, "features have no columns");
  require(columns.size() == values.size(), "columns and values differ in length");
  require(rows.rows + 1 == starts.size(), "starts must have one entry more than there are rows");
  require(sums.shape(0) == rows.rows && squares.size() == rows.rows,
          "features and sums differ in length");
  require(step > 0 && limit > 0 && inverse_step > 0, "steps and limit must be positive");
  require_rows(starts, begin, end, columns.size());
  nb::gil_scoped_release released;
  taciturn::float_sums({starts.data(), columns.data(), values.data(), step, limit, stride}, rows,
                       counterparts, begin, end,
                       {width, inverse_step, sums.data(), squares.data()}, set);
}

bool float_rows(Matrix<const double> profiles, double bound, Matrix<float> features,
                Vector<float> scales, std::size_t begin, std::size_t end) {
  const auto set = taciturn::instruction_set();
  const std::size_t width = profiles.shape(1);
  require(features.shape(0) == profiles.shape(0) && scales.size() == profiles.shape(0) &&
              features.shape(1) >= width,
          "profiles, features and scales differ in shape");
  require(bound > 0, "the norm bound must be positive");
  require(begin <= end && end <= profiles.shape(0), "rows out of range");
  nb::gil_scoped_release released;
  return taciturn::float_rows({profiles.data(), width, features.shape(1), bound}, begin, end,
                              features.data(), scales.data(), set);
}

}  // namespace

void bind_float_pass(nb::module_& module) {
  module.def(
      "float_stride",
      [](std::size_t width) { return float_stride(width, taciturn::instruction_set()); },
      "width"_a, "Number of columns to which the features of float_sums are padded.");
  module.def("float_sums", &float_sums, "starts"_a, "columns"_a, "values"_a, "step"_a, "limit"_a,
             "features"_a, "scales"_a, "other_features"_a, "other_scales"_a, "inverse_step"_a,
             "sums"_a.noconvert(), "squares"_a.noconvert(), "begin"_a, "end"_a,
             "Sums of prediction error times feature by row, in floats.");
  module.def("float_rows", &float_rows, "profiles"_a, "bound"_a, "features"_a.noconvert(),
             "scales"_a.noconvert(), "begin"_a, "end"_a,
             "Features and scales of profiles; false if a profile is too long or not finite.");
}

}  // namespace taciturn::bindings
