// The Python face of the compiled core; it checks shapes, releases the GIL, and has no other logic.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <stdexcept>
#include <string>

#include "cpu.hpp"
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
  nb::gil_scoped_release released;
  tacit::grid_sums(starts.data(), columns.data(), {values.data(), lowest, highest},
                   features.data(), features.shape(1), begin, end, out.data());
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
      .def("fill", &fill, "words"_a, "out"_a, "portable"_a = false,
           "Draw integers from uniform words; returns the words used, or None if too few.")
      .def_ro("sigma", &tacit::Ziggurat::sigma)
      .def_ro("width", &tacit::Ziggurat::width)
      .def_ro("inside", &tacit::Ziggurat::inside)
      .def_ro("lower", &tacit::Ziggurat::lower)
      .def_ro("height", &tacit::Ziggurat::height)
      .def_ro("tail_start", &tacit::Ziggurat::tail_start)
      .def_ro("tail_cell", &tacit::Ziggurat::tail_cell);
  module.def("exp_minus", &tacit::exp_minus, "w"_a, "exp(-w), with the same bits everywhere.");
  module.def("grid_sums", &grid_sums, "starts"_a, "columns"_a, "values"_a, "lowest"_a,
             "highest"_a, "features"_a, "out"_a, "begin"_a, "end"_a,
             "Exact integer sums of value times feature by row.");
}
