// A last line for the user when a library aborts the process, which no exception handler sees.
#pragma once

#include <string_view>

namespace taciturn {

// From now on an abort writes this line to stderr and ends the process with exit code 2. Longer
// lines are cut. A second call only changes the line.
void guard_aborts(std::string_view line);

// Restores the handling of aborts from before the guard.
void unguard_aborts();

}  // namespace taciturn
