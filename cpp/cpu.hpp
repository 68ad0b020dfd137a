// Instruction set of the processor, detected once at run time.
#pragma once

#include <string_view>

namespace taciturn {

enum class InstructionSet { portable, avx512 };

// Best instruction set that both this build and the processor support.
InstructionSet best_instruction_set() noexcept;

std::string_view name(InstructionSet set) noexcept;

}  // namespace taciturn
