// Converts input columns to stored columns: ratings to codes, ids to indices.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

namespace taciturn {

// Rating scale. If the inverse step is positive, the code of a rating is its number of steps above low.
struct Steps {
  double low;
  double high;
  double inverse_step;
  double tolerance;  // maximum distance of a rating from a step, in steps
};

// Writes the codes of ratings, and marks ratings that are not on the scale. Those get the nearest code;
// NaN gets the lowest.
template <typename Code>
void encode(std::span<const double> values, Steps scale, std::span<Code> codes,
            std::span<bool> outside) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    const double inside = value >= scale.low ? std::min(value, scale.high) : scale.low;
    double code = inside;
    bool off = inside != value;
    if (scale.inverse_step > 0) {
      const double level = (inside - scale.low) * scale.inverse_step;
      code = std::nearbyint(level);
      off |= std::fabs(level - code) > scale.tolerance;
    }
    codes[i] = static_cast<Code>(code);
    outside[i] = off;
  }
}

// Index of an id in a table of the ids low, low + 1, …; throws if it is not in the table.
template <typename Id>
std::size_t checked_place(Id id, std::int64_t low, std::size_t size) {
  // Unsigned: the difference of two ids may not fit into a signed integer.
  const auto place = static_cast<std::uint64_t>(id) - static_cast<std::uint64_t>(low);
  if (id < low || place >= size) throw std::out_of_range("an id is out of range");
  return place;
}

// Sets present[id − low] for each id.
template <typename Id>
void mark(std::span<const Id> ids, std::int64_t low, std::span<bool> present) {
  for (const Id id : ids) present[checked_place(id, low, present.size())] = true;
}

// out[i] = table[ids[i] − low].
template <typename Id>
void look_up(std::span<const Id> ids, std::int64_t low, std::span<const std::int32_t> table,
             std::span<std::int32_t> out) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    out[i] = table[checked_place(ids[i], low, table.size())];
  }
}

}  // namespace taciturn
