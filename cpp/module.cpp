// Python bindings of the compiled core. They check shapes and release the GIL, and have no other logic.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "abort_guard.hpp"
#include "bindings.hpp"
#include "compact.hpp"
#include "cpu.hpp"
#include "csr.hpp"
#include "grid_sums.hpp"
#include "pack.hpp"
#include "posterior.hpp"
#include "error_sums.hpp"
#include "planted_faults.hpp"
#include "ridge.hpp"
#include "top_k.hpp"
#include "ziggurat.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace taciturn::bindings;

namespace {

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "gcc " __VERSION__;
#else
  return "unknown";
#endif
}

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const auto set : taciturn::supported_instruction_sets()) names.emplace_back(taciturn::name(set));
  return names;
}

std::optional<std::size_t> fill(const taciturn::Ziggurat& table, Vector<const std::uint64_t> words,
                                Vector<std::int64_t> out) {
  require(words.size() >= out.size(), "fewer words than numbers to draw");
  require(out.size() < (std::size_t{1} << 32), "draw at most 2^32 - 1 numbers at once");
  const auto set = taciturn::instruction_set();
  nb::gil_scoped_release released;
  return table.fill(words.data(), words.size(), out.data(), out.size(), set);
}

void grid_sums(Vector<const std::int64_t> starts, Vector<const std::int32_t> columns,
               Vector<const std::int32_t> values, std::int32_t lowest, std::int32_t highest,
               Matrix<const std::int32_t> features, Matrix<std::int64_t> out, std::size_t begin,
               std::size_t end) {
  require(columns.size() == values.size(), "columns and values differ in length");
  require(out.shape(0) + 1 == starts.size(), "starts must have one entry more than out has rows");
  require(out.shape(1) == features.shape(1), "out and features differ in width");
  require(lowest <= highest, "lowest exceeds highest");
  require_rows(starts, begin, end, columns.size());
  const auto set = taciturn::instruction_set();
  nb::gil_scoped_release released;
  taciturn::grid_sums(starts.data(), columns.data(), {values.data(), lowest, highest},
                   {features.data(), features.shape(0), features.shape(1)}, begin, end, out.data(),
                   set);
}

void pack_rows(Matrix<const double> features, Vector<const double> factors,
               Matrix<std::int16_t> out, std::size_t begin, std::size_t end) {
  require(factors.size() == features.shape(0), "pass one factor for each row");
  require(out.shape(0) == features.shape(0) && out.shape(1) >= features.shape(1),
          "features and out differ in shape");
  require(begin <= end && end <= out.shape(0), "rows out of range");
  const auto set = taciturn::instruction_set();
  bool finite;
  {
    nb::gil_scoped_release released;
    finite = taciturn::pack_rows(features.data(), factors.data(), features.shape(1), out.shape(1),
                              taciturn::ErrorPass::norm, begin, end, out.data(), set);
  }
  require(finite, "features must be finite numbers");
}

void ridge_rows(Vector<const std::int64_t> starts, Vector<const std::int32_t> columns,
                Vector<const float> targets, Matrix<const float> counterparts,
                Vector<const double> by_count, Vector<const double> fixed, Matrix<float> out,
                Matrix<float> inverse, std::size_t begin, std::size_t end) {
  const std::size_t width = counterparts.shape(1);
  require(columns.size() == targets.size(), "columns and targets differ in length");
  require(out.shape(0) + 1 == starts.size() && out.shape(1) == width,
          "out must have one row for each row of the table, as wide as counterparts");
  require(by_count.size() == width && fixed.size() == width,
          "pass one regularization for each column");
  require(width > 0, "counterparts have no columns");
  const std::size_t inverted = inverse.shape(1) / width;
  require(inverse.shape(0) == out.shape(0) && inverse.shape(1) == inverted * width && inverted < width,
          "inverse must have one row for each row of the table, and whole columns after the first");
  require_rows(starts, begin, end, columns.size());
  const auto set = taciturn::instruction_set();
  nb::gil_scoped_release released;
  taciturn::ridge_rows({starts.data(), columns.data(), targets.data(), counterparts.data(),
                     counterparts.shape(0), width, by_count.data(), fixed.data()},
                    begin, end, out.data(), {inverted, inverse.data()}, set);
}

void posterior_rows(Vector<const std::int64_t> starts, Vector<const std::int32_t> columns,
                    Matrix<const float> table, std::size_t design, Matrix<const double> sums,
                    Vector<const double> noise, Matrix<const double> known,
                    Matrix<const double> precision, Matrix<const double> pull,
                    Matrix<double> means, Matrix<double> variances, Matrix<double> total,
                    std::size_t begin, std::size_t end) {
  const std::size_t rows = means.shape(0), unknown = means.shape(1), features = noise.size();
  require(table.shape(1) % 16 == 0 && design % 16 == 0 && features <= design &&
              design + unknown + known.shape(1) <= table.shape(1),
          "the columns of the table do not match the features and the design");
  require(sums.shape(0) == rows && sums.shape(1) == features && known.shape(0) == rows &&
              pull.shape(0) == rows && pull.shape(1) == unknown &&
              precision.shape(0) == unknown && precision.shape(1) == unknown &&
              variances.shape(0) == rows && variances.shape(1) == unknown &&
              total.shape(0) == unknown && total.shape(1) == unknown,
          "sums, prior and results differ in shape");
  require(starts.size() == rows + 1, "starts must have one entry more than there are rows");
  require_rows(starts, begin, end, columns.size());
  const auto set = taciturn::instruction_set();
  nb::gil_scoped_release released;
  taciturn::posterior_rows({starts.data(), columns.data(), table.data(), table.shape(0),
                         table.shape(1), features, design, unknown, known.shape(1), sums.data(),
                         noise.data(), known.data(), precision.data(), pull.data()},
                        begin, end, {means.data(), variances.data(), total.data()}, set);
}

void products(Vector<const std::int64_t> starts, Vector<const std::int32_t> columns,
              Matrix<const float> rows, Matrix<const float> others, Vector<float> out,
              std::size_t begin, std::size_t end) {
  require(rows.shape(1) == others.shape(1), "rows and others differ in width");
  require(starts.size() == rows.shape(0) + 1, "starts must have one entry more than there are rows");
  require(out.size() == columns.size(), "columns and out differ in length");
  require_rows(starts, begin, end, columns.size());
  nb::gil_scoped_release released;
  taciturn::products(starts.data(), columns.data(), rows.data(), others.data(), others.shape(0),
                  rows.shape(1), begin, end, out.data());
}

using StridedRows = nb::ndarray<const float, nb::ndim<2>, nb::device::cpu>;

taciturn::RowsOfFloats rows_of_floats(const StridedRows& array) {
  const auto width = array.shape(1);
  require(width < 2 || array.stride(1) == 1, "the numbers of a row must follow each other");
  require(array.shape(0) < 2 || array.stride(0) >= static_cast<std::int64_t>(width),
          "rows must be in ascending order");
  return {array.data(), static_cast<std::size_t>(array.stride(0)), width};
}

void top_k(const StridedRows& factors, Vector<const float> biases, Matrix<const float> users,
           Vector<const std::int64_t> starts, Vector<const std::int32_t> excluded,
           Matrix<std::int32_t> items, Matrix<float> scores, std::size_t begin, std::size_t end,
           const std::optional<StridedRows>& interests, float weight) {
  const taciturn::Catalogue catalogue{
      interests ? rows_of_floats(*interests) : taciturn::RowsOfFloats{}, rows_of_floats(factors),
      weight, biases.data(), biases.size()};
  require(factors.shape(0) == biases.size() && users.shape(1) == catalogue.width() &&
              (!interests || interests->shape(0) == biases.size()),
          "factors, biases and users differ in shape");
  require(biases.size() < std::numeric_limits<std::int32_t>::max(), "too many items");
  require(items.shape(0) == users.shape(0) && scores.shape(0) == users.shape(0) &&
              items.shape(1) == scores.shape(1) && items.shape(1) > 0,
          "users and results differ in length");
  require(starts.size() == users.shape(0) + 1, "pass one row of excluded items for each user");
  require_rows(starts, begin, end, excluded.size());
  const auto set = taciturn::instruction_set();
  nb::gil_scoped_release released;
  taciturn::top_k(catalogue, users.data(), {starts.data(), excluded.data()}, begin, end,
                  {items.shape(1), items.data(), scores.data()}, set);
}

template <typename T>
std::span<T> span(const Vector<T>& array) {
  return {array.data(), array.size()};
}

void count_keys(Vector<const std::int32_t> keys, Vector<std::int64_t> counts) {
  nb::gil_scoped_release released;
  taciturn::count_keys(span(keys), span(counts));
}

template <typename Value>
taciturn::RowWriter<Value> row_writer(const Vector<std::int64_t>& next, const Vector<std::int32_t>& columns,
                            const Vector<Value>& values) {
  require(columns.size() == values.size(), "columns and values differ in length");
  return {span(next), span(columns), span(values)};
}

template <typename Value>
void group(Vector<const std::int32_t> rows, Vector<const std::int32_t> columns,
           Vector<const Value> values, Vector<std::int64_t> next,
           Vector<std::int32_t> out_columns, Vector<Value> out_values) {
  require(rows.size() == columns.size() && rows.size() == values.size(), "triples differ in length");
  const auto out = row_writer(next, out_columns, out_values);
  nb::gil_scoped_release released;
  taciturn::group<Value>(span(rows), span(columns), span(values), out);
}

template <typename Value>
void transpose(Vector<const std::int64_t> starts, Vector<const std::int32_t> columns,
               Vector<const Value> values, std::size_t begin, std::size_t end,
               Vector<std::int64_t> next, Vector<std::int32_t> out_columns,
               Vector<Value> out_values) {
  require(columns.size() == values.size(), "columns and values differ in length");
  require_rows(starts, begin, end, columns.size());
  const auto out = row_writer(next, out_columns, out_values);
  nb::gil_scoped_release released;
  taciturn::transpose<Value>(span(starts), span(columns), span(values), begin, end, out);
}

template <typename Code>
void encode(Vector<const double> values, double low, double high, double inverse_step,
            double tolerance, Vector<Code> codes, Vector<bool> outside) {
  require(values.size() == codes.size() && values.size() == outside.size(),
          "values, codes and outside differ in length");
  nb::gil_scoped_release released;
  taciturn::encode<Code>(span(values), {low, high, inverse_step, tolerance}, span(codes),
                      span(outside));
}

template <typename Code>
void bind_encode(nb::module_& module) {
  module.def("encode", &encode<Code>, "values"_a, "low"_a, "high"_a, "inverse_step"_a,
             "tolerance"_a, "codes"_a.noconvert(), "outside"_a.noconvert(),
             "Encode ratings, and mark those that are not on the scale.");
}

template <typename Id>
void mark(Vector<const Id> ids, std::int64_t low, Vector<bool> present) {
  nb::gil_scoped_release released;
  taciturn::mark<Id>(span(ids), low, span(present));
}

template <typename Id>
void look_up(Vector<const Id> ids, std::int64_t low, Vector<const std::int32_t> table,
             Vector<std::int32_t> out) {
  require(ids.size() == out.size(), "ids and out differ in length");
  nb::gil_scoped_release released;
  taciturn::look_up<Id>(span(ids), low, span(table), span(out));
}

template <typename Id>
void bind_ids(nb::module_& module) {
  module.def("mark", &mark<Id>, "ids"_a.noconvert(), "low"_a, "present"_a.noconvert(),
             "Set present[id - low] for each id.");
  module.def("look_up", &look_up<Id>, "ids"_a.noconvert(), "low"_a, "table"_a,
             "out"_a.noconvert(), "Write table[id - low] for each id.");
}

template <typename Value>
void bind_csr(nb::module_& module) {
  module.def("group", &group<Value>, "rows"_a, "columns"_a, "values"_a, "places"_a.noconvert(),
             "out_columns"_a.noconvert(), "out_values"_a.noconvert(),
             "Group (row, column, value) triples by row.");
  module.def("transpose", &transpose<Value>, "starts"_a, "columns"_a, "values"_a, "begin"_a,
             "end"_a, "places"_a.noconvert(), "out_columns"_a.noconvert(),
             "out_values"_a.noconvert(), "Append rows of a matrix to its transpose.");
}

}  // namespace

NB_MODULE(_core, module) {
  module.doc() = "Compiled kernels of Taciturn.";
  module.def("compiler", &compiler, "Compiler that built the core.");
  module.def(
      "instruction_set", [] { return std::string(taciturn::name(taciturn::instruction_set())); },
      "Instruction set that the kernels use.");
  module.def("instruction_sets", &instruction_sets,
             "Instruction sets that this processor supports, the fastest first.");
  module.def(
      "use_instruction_set", [](const std::string& name) { taciturn::use_instruction_set(name); },
      "name"_a, "Choose the instruction set of all kernels, for all threads.");
  if (const char* chosen = std::getenv("TACITURN_ISA"); chosen && *chosen) {
    try {
      taciturn::use_instruction_set(chosen);
    } catch (const std::invalid_argument& error) {
      throw nb::import_error((std::string("TACITURN_ISA: ") + error.what()).c_str());
    }
  }
  module.def(
      "guard_aborts", [](nb::bytes line) { taciturn::guard_aborts({line.c_str(), line.size()}); },
      "line"_a, "Let an abort write a line to stderr and end the process with exit code 2.");
  module.def("unguard_aborts", &taciturn::unguard_aborts, "Undo guard_aborts.");

  nb::class_<taciturn::Ziggurat>(module, "Ziggurat",
                              "Discrete Gaussian sampler; see cpp/ziggurat.hpp.")
      .def(nb::init<double>(), "sigma"_a)
      .def("fill", &fill, "words"_a, "out"_a.noconvert(),
           "Draw integers from uniform words. Returns the number of words used; None if too few.")
      .def_ro("sigma", &taciturn::Ziggurat::sigma)
      .def_ro("width", &taciturn::Ziggurat::width)
      .def_ro("inside", &taciturn::Ziggurat::inside)
      .def_ro("lower", &taciturn::Ziggurat::lower)
      .def_ro("height", &taciturn::Ziggurat::height)
      .def_ro("tail_start", &taciturn::Ziggurat::tail_start)
      .def_ro("tail_cell", &taciturn::Ziggurat::tail_cell);
  module.attr("SIGMA_MIN") = taciturn::Ziggurat::sigma_min;
  module.attr("SIGMA_MAX") = taciturn::Ziggurat::sigma_max;
  module.def("exp_minus", &taciturn::exp_minus, "w"_a, "exp(-w), with the same bits on every machine.");
  module.def("grid_sums", &grid_sums, "starts"_a, "columns"_a, "values"_a, "lowest"_a,
             "highest"_a, "features"_a, "out"_a.noconvert(), "begin"_a, "end"_a, "Exact integer sums of value times feature by row.");

  bind_error_sums(module);
  bind_rows(module);
  bind_float_pass(module);
  module.def("pack_rows", &pack_rows, "features"_a, "factors"_a, "out"_a.noconvert(), "begin"_a, "end"_a, "Round feature rows to the grid of error_sums.");
  module.def("ridge_rows", &ridge_rows, "starts"_a, "columns"_a, "targets"_a, "counterparts"_a,
             "by_count"_a, "fixed"_a, "out"_a.noconvert(), "inverse"_a.noconvert(), "begin"_a,
             "end"_a, "Regularized least squares by row.");
  module.def("posterior_rows", &posterior_rows, "starts"_a, "columns"_a, "table"_a, "design"_a,
             "sums"_a, "noise"_a, "known"_a, "precision"_a, "pull"_a, "means"_a.noconvert(),
             "variances"_a.noconvert(), "total"_a.noconvert(), "begin"_a, "end"_a, "Posterior of each row's coefficients, given noisy sums.");
  module.def("products", &products, "starts"_a, "columns"_a, "rows"_a, "others"_a,
             "out"_a.noconvert(), "begin"_a, "end"_a, "Inner product of the two rows of each pair.");
  module.def("top_k", &top_k, "factors"_a.noconvert(), "biases"_a, "users"_a, "starts"_a,
             "excluded"_a, "items"_a.noconvert(), "scores"_a.noconvert(), "begin"_a, "end"_a,
             "interests"_a.noconvert() = nb::none(), "weight"_a = 1.0f, "Top-k items of each user.");

#if defined(TACITURN_SANITIZE)
  module.def("write_past_end", &taciturn::write_past_end, "size"_a, "Write one byte too many.");
  module.def("add_signed", &taciturn::add_signed, "a"_a, "b"_a, "32-bit sum that may overflow.");
#endif

  module.def("count_keys", &count_keys, "keys"_a, "counts"_a.noconvert(),
             "Add the number of occurrences of each key to counts.");
  bind_encode<std::uint8_t>(module);
  bind_encode<std::uint16_t>(module);
  bind_encode<float>(module);
  bind_ids<std::int32_t>(module);
  bind_ids<std::int64_t>(module);
  bind_csr<std::uint8_t>(module);
  bind_csr<std::uint16_t>(module);
  bind_csr<std::uint32_t>(module);
  bind_csr<float>(module);
}
