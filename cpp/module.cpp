// The Python face of the compiled core; no logic of its own.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "cpu.hpp"

namespace nb = nanobind;

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

}  // namespace

NB_MODULE(_core, module) {
  module.doc() = "Compiled kernels of Tacit.";
  module.def("compiler", &compiler, "The compiler that built the core.");
  module.def(
      "instruction_set", [] { return std::string(tacit::name(tacit::best_instruction_set())); },
      "The instruction set that the kernels use on this processor.");
}
