#include "planted_faults.hpp"

#include <memory>

namespace taciturn {

void write_past_end(std::size_t size) {
  const auto bytes = std::make_unique<char[]>(size);
  volatile char* end = bytes.get() + size;
  *end = 1;
}

std::int32_t add_signed(std::int32_t a, std::int32_t b) { return a + b; }

}  // namespace taciturn
