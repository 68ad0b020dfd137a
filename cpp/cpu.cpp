#include "cpu.hpp"

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "targets.hpp"

namespace taciturn {

namespace {

std::vector<InstructionSet> detect() {
  std::vector<InstructionSet> found;
#if defined(TACITURN_EMULATED)
  found = {InstructionSet::avx512, InstructionSet::avx2};
#elif defined(TACITURN_X86)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512ifma") && __builtin_cpu_supports("avx512vnni")) {
    found.push_back(InstructionSet::avx512);
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    found.push_back(InstructionSet::avx2);
  }
#endif
  found.push_back(InstructionSet::portable);
  return found;
}

std::atomic<InstructionSet>& current() {
  static std::atomic<InstructionSet> set = supported_instruction_sets().front();
  return set;
}

}  // namespace

std::string_view name(InstructionSet set) noexcept {
  switch (set) {
    case InstructionSet::avx512: return "avx512";
    case InstructionSet::avx2: return "avx2";
    default: return "portable";
  }
}

const std::vector<InstructionSet>& supported_instruction_sets() {
  static const std::vector<InstructionSet> found = detect();
  return found;
}

InstructionSet instruction_set() noexcept { return current().load(std::memory_order_relaxed); }

void use_instruction_set(std::string_view chosen) {
  const auto& supported = supported_instruction_sets();
  const auto found = std::find_if(supported.begin(), supported.end(),
                                  [&](InstructionSet each) { return name(each) == chosen; });
  if (found == supported.end()) {
    std::string names;
    for (const InstructionSet each : supported) {
      names += (names.empty() ? "" : ", ") + std::string(name(each));
    }
    throw std::invalid_argument("this processor has no instruction set '" + std::string(chosen) +
                                "'; choose one of " + names);
  }
  current().store(*found, std::memory_order_relaxed);
}

}  // namespace taciturn
