// Faults that the sanitizers must report; part of the build of `make sanitize` only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace taciturn {

// Allocates `size` bytes and writes the byte after them.
void write_past_end(std::size_t size);

// a + b, which is undefined if the sum does not fit into 32 bits.
std::int32_t add_signed(std::int32_t a, std::int32_t b);

}  // namespace taciturn
