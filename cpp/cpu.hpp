// Which instructions the processor running us has; asked once, at run time.
#pragma once

#include <string_view>

namespace taciturn {

enum class InstructionSet { portable, avx512 };

// The best set that both this build and this processor know.
InstructionSet best_instruction_set() noexcept;

std::string_view name(InstructionSet set) noexcept;

}  // namespace taciturn
