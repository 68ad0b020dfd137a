// Instruction sets of the kernels, chosen at run time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace taciturn {

// `portable` is compiled for any processor of the platform. `avx2` includes FMA, and `avx512` the
// 52-bit multiplication of IFMA and the sums of 16-bit products of VNNI.
enum class InstructionSet { portable, avx2, avx512 };

std::string_view name(InstructionSet set) noexcept;

// Instruction sets that this processor supports, the fastest first.
const std::vector<InstructionSet>& supported_instruction_sets();

// Instruction set that the kernels use: the fastest, unless another was chosen.
InstructionSet instruction_set() noexcept;

// Chooses the instruction set by name, for all threads. Throws std::invalid_argument if there is none
// of that name or this processor does not support it.
void use_instruction_set(std::string_view name);

}  // namespace taciturn
