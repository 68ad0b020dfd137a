#include "cpu.hpp"

namespace taciturn {

namespace {

InstructionSet detect() noexcept {
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
  // The kernels use the 52-bit multiplication of IFMA and the sums of 16-bit products of VNNI.
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512ifma") && __builtin_cpu_supports("avx512vnni")) {
    return InstructionSet::avx512;
  }
#endif
  return InstructionSet::portable;
}

}  // namespace

InstructionSet best_instruction_set() noexcept {
  static const InstructionSet best = detect();
  return best;
}

std::string_view name(InstructionSet set) noexcept {
  return set == InstructionSet::avx512 ? "avx512" : "portable";
}

}  // namespace taciturn
