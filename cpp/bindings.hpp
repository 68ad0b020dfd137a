// Array types and checks shared by the Python bindings.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "cpu.hpp"

namespace taciturn::bindings {

template <typename T>
using Vector = nanobind::ndarray<T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
template <typename T>
using Matrix = nanobind::ndarray<T, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;

inline void require(bool holds, const char* otherwise) {
  if (!holds) throw std::invalid_argument(otherwise);
}

// Throws unless rows [begin, end) of a CSR matrix exist, with ascending starts within the entries.
inline void require_rows(const Vector<const std::int64_t>& starts, std::size_t begin,
                         std::size_t end, std::size_t entries) {
  require(begin <= end && end < starts.size(), "rows out of range");
  const std::int64_t* first = starts.data() + begin;
  require(*first >= 0 && std::is_sorted(first, starts.data() + end + 1) &&
              starts.data()[end] <= static_cast<std::int64_t>(entries),
          "starts must be ascending and within the entries");
}

// Adds error_sums() and its constants to the module.
void bind_error_sums(nanobind::module_& module);

// Adds steps on the ratings of each row.
void bind_rows(nanobind::module_& module);

// Adds float_sums() and the functions that prepare its input to the module.
void bind_float_pass(nanobind::module_& module);

}  // namespace taciturn::bindings
