// Zeroed 32-bit sums for one pass of a kernel.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace taciturn {

// Each thread reuses the memory of small passes, because fresh memory is slow. A pass must set the sums
// that it used back to zero.
class ScratchSums {
 public:
  explicit ScratchSums(std::size_t size) {
    thread_local Memory reused;
    thread_local std::size_t room = 0;
    if (size > reused_max) {
      own_ = zeroed(size);
      data = own_.get();
      return;
    }
    if (size > room) {
      room = 0;
      reused = zeroed(size);
      room = size;
    }
    data = reused.get();
  }

  std::int32_t* data;  // aligned to 64 bytes

 private:
  struct Free {
    void operator()(std::int32_t* memory) const { ::operator delete(memory, alignment); }
  };
  using Memory = std::unique_ptr<std::int32_t, Free>;
  static constexpr std::align_val_t alignment{64};
  static constexpr std::size_t reused_max = std::size_t{1} << 22;

  static Memory zeroed(std::size_t size) {
    Memory memory(static_cast<std::int32_t*>(::operator new(size * sizeof(std::int32_t), alignment)));
    std::fill_n(memory.get(), size, 0);
    return memory;
  }

  Memory own_;
};

}  // namespace taciturn
