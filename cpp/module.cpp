// The Python face of the compiled core; it checks shapes, releases the GIL, and has no other logic.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "cpu.hpp"
#include "csr.hpp"
#include "grid_sums.hpp"
#include "ziggurat.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <typename T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "gcc " __VERSION__;
#else
  return "unknown";
#endif
}

void require(bool holds, const char* otherwise) {
  if (!holds) throw std::invalid_argument(otherwise);
}

std::optional<std::size_t> fill(const tacit::Ziggurat& table, Vector<const std::uint64_t> words,
                                Vector<std::int64_t> out, bool portable) {
  require(words.size() >= out.size(), "fewer words than numbers to draw");
  require(out.size() < (std::size_t{1} << 32), "draw at most 2^32 - 1 numbers at once");
  const auto set = portable ? tacit::InstructionSet::portable : tacit::best_instruction_set();
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
  require(begin <= end && end <= out.shape(0), "rows out of range");
  require(std::is_sorted(starts.data() + begin, starts.data() + end + 1) &&
              starts.data()[begin] >= 0 &&
              starts.data()[end] <= static_cast<std::int64_t>(columns.size()),
          "starts must rise within the entries");
  nb::gil_scoped_release released;
  tacit::grid_sums(starts.data(), columns.data(), {values.data(), lowest, highest},
                   {features.data(), features.shape(0), features.shape(1)}, begin, end, out.data());
}

template <typename T>
std::span<T> span(const Vector<T>& array) {
  return {array.data(), array.size()};
}

bool rises(const Vector<const std::int64_t>& starts, std::size_t entries) {
  const std::int64_t* begin = starts.data();
  return starts.size() > 0 && begin[0] == 0 &&
         begin[starts.size() - 1] == static_cast<std::int64_t>(entries) &&
         std::is_sorted(begin, begin + starts.size());
}

void row_starts(Vector<const std::int32_t> keys, Vector<std::int64_t> starts) {
  require(starts.size() > 0, "starts needs at least one entry");
  nb::gil_scoped_release released;
  tacit::row_starts(span(keys), span(starts));
}

// The table to write and the rows of it; `starts` must come from row_starts of the same keys.
template <typename Value>
tacit::Csr<Value> table(const Vector<const std::int64_t>& starts,
                        const Vector<std::int32_t>& columns, const Vector<Value>& values,
                        std::size_t entries, tacit::Rows rows) {
  require(rises(starts, entries), "starts must rise from 0 to the number of entries");
  require(columns.size() == entries && values.size() == entries, "outputs have the wrong length");
  require(0 <= rows.begin && rows.begin <= rows.end &&
              static_cast<std::size_t>(rows.end) < starts.size(),
          "rows out of range");
  return {span(starts), span(columns), span(values)};
}

template <typename Value>
void group(Vector<const std::int32_t> keys, Vector<const std::int32_t> columns,
           Vector<const Value> values, Vector<const std::int64_t> out_starts,
           Vector<std::int32_t> out_columns, Vector<Value> out_values, std::int32_t begin,
           std::int32_t end) {
  require(keys.size() == columns.size() && keys.size() == values.size(), "triples differ in length");
  const auto out = table(out_starts, out_columns, out_values, keys.size(), {begin, end});
  nb::gil_scoped_release released;
  tacit::group<Value>(span(keys), span(columns), span(values), out, {begin, end});
}

template <typename Value>
void transpose(Vector<const std::int64_t> starts, Vector<const std::int32_t> columns,
               Vector<const Value> values, Vector<const std::int64_t> out_starts,
               Vector<std::int32_t> out_columns, Vector<Value> out_values, std::int32_t begin,
               std::int32_t end) {
  require(columns.size() == values.size(), "columns and values differ in length");
  require(rises(starts, columns.size()), "starts must rise from 0 to the number of entries");
  const auto out = table(out_starts, out_columns, out_values, columns.size(), {begin, end});
  nb::gil_scoped_release released;
  tacit::transpose<Value>(span(starts), span(columns), span(values), out, {begin, end});
}

template <typename Value>
void bind_csr(nb::module_& module) {
  module.def("group", &group<Value>, "keys"_a, "columns"_a, "values"_a, "out_starts"_a,
             "out_columns"_a.noconvert(), "out_values"_a.noconvert(), "begin"_a, "end"_a, "File triples by row.");
  module.def("transpose", &transpose<Value>, "starts"_a, "columns"_a, "values"_a, "out_starts"_a,
             "out_columns"_a.noconvert(), "out_values"_a.noconvert(), "begin"_a, "end"_a,
             "Transpose compressed sparse rows.");
}

}  // namespace

NB_MODULE(_core, module) {
  module.doc() = "Compiled kernels of Tacit.";
  module.def("compiler", &compiler, "The compiler that built the core.");
  module.def(
      "instruction_set", [] { return std::string(tacit::name(tacit::best_instruction_set())); },
      "The instruction set that the kernels use on this processor.");

  nb::class_<tacit::Ziggurat>(module, "Ziggurat",
                              "Integers with Gaussian probabilities; see cpp/ziggurat.hpp.")
      .def(nb::init<double>(), "sigma"_a)
      .def("fill", &fill, "words"_a, "out"_a.noconvert(), "portable"_a = false,
           "Draw integers from uniform words; returns the words used, or None if too few.")
      .def_ro("sigma", &tacit::Ziggurat::sigma)
      .def_ro("width", &tacit::Ziggurat::width)
      .def_ro("inside", &tacit::Ziggurat::inside)
      .def_ro("lower", &tacit::Ziggurat::lower)
      .def_ro("height", &tacit::Ziggurat::height)
      .def_ro("tail_start", &tacit::Ziggurat::tail_start)
      .def_ro("tail_cell", &tacit::Ziggurat::tail_cell);
  module.attr("SIGMA_MIN") = tacit::Ziggurat::sigma_min;
  module.attr("SIGMA_MAX") = tacit::Ziggurat::sigma_max;
  module.def("exp_minus", &tacit::exp_minus, "w"_a, "exp(-w), with the same bits everywhere.");
  module.def("grid_sums", &grid_sums, "starts"_a, "columns"_a, "values"_a, "lowest"_a,
             "highest"_a, "features"_a, "out"_a.noconvert(), "begin"_a, "end"_a,
             "Exact integer sums of value times feature by row.");

  module.def("row_starts", &row_starts, "keys"_a, "starts"_a.noconvert(),
             "Write where the rows of entries with these keys start.");
  bind_csr<std::uint8_t>(module);
  bind_csr<std::uint16_t>(module);
  bind_csr<std::uint32_t>(module);
  bind_csr<float>(module);
}
