// Instructions that the system's SIMDe lacks, as loops. intrinsics.cpp compares them with the real ones.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

// Vectors, masks and unsigned 128-bit numbers; `Prefix` keeps these functions apart from the real ones.
namespace test::missing {

__extension__ using Wide = unsigned __int128;

template <typename To, typename From>
inline To as(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

template <typename Number, int Count>
struct Array {
  Number at[Count];
};

using I64 = Array<std::int64_t, 8>;
using U64 = Array<std::uint64_t, 8>;
using I32 = Array<std::int32_t, 16>;
using F32 = Array<float, 16>;

// Converts each number of a narrower vector.
template <typename To, typename From, int Count, typename Vector, typename Narrow>
inline Vector converted(const Narrow& narrow) {
  const auto from = as<Array<From, Count>>(narrow);
  Array<To, Count> to;
  for (int i = 0; i < Count; ++i) to.at[i] = static_cast<To>(from.at[i]);
  return as<Vector>(to);
}

template <typename V>
inline V alignr_epi32(V a, V b, int shift) {
  const auto high = as<I32>(a), low = as<I32>(b);
  I32 to;
  for (int i = 0; i < 16; ++i) {
    const int k = i + shift;
    to.at[i] = k < 16 ? low.at[k] : high.at[k - 16];
  }
  return as<V>(to);
}

// To nearest, ties to even; out of range gives the smallest number.
template <typename V, typename F>
inline V cvtps_epi32(F a) {
  const auto from = as<F32>(a);
  I32 to;
  for (int i = 0; i < 16; ++i) {
    const float near = std::nearbyint(from.at[i]);
    to.at[i] = near >= -0x1p31f && near < 0x1p31f ? static_cast<std::int32_t>(near) : INT32_MIN;
  }
  return as<V>(to);
}

template <typename V>
inline V i64gather_epi64(V index, const void* base, int scale) {
  const auto at = as<I64>(index);
  I64 to;
  for (int i = 0; i < 8; ++i) {
    std::memcpy(&to.at[i], static_cast<const char*>(base) + at.at[i] * scale, 8);
  }
  return as<V>(to);
}

template <typename V>
inline V madd52(V sum, V a, V b, bool upper) {
  constexpr std::uint64_t mask = (std::uint64_t{1} << 52) - 1;
  const auto x = as<U64>(a), y = as<U64>(b);
  auto to = as<U64>(sum);
  for (int i = 0; i < 8; ++i) {
    const Wide product = Wide{x.at[i] & mask} * (y.at[i] & mask);
    to.at[i] += upper ? static_cast<std::uint64_t>(product >> 52)
                      : static_cast<std::uint64_t>(product) & mask;
  }
  return as<V>(to);
}

template <typename Number, int Count, typename V>
inline void mask_store(void* to, unsigned mask, V vector) {
  const auto from = as<Array<Number, Count>>(vector);
  for (int i = 0; i < Count; ++i) {
    if (mask >> i & 1) std::memcpy(static_cast<Number*>(to) + i, &from.at[i], sizeof(Number));
  }
}

template <typename Number, int Count, typename V>
inline V mask_load(unsigned mask, const void* from) {
  Array<Number, Count> to{};
  for (int i = 0; i < Count; ++i) {
    if (mask >> i & 1) std::memcpy(&to.at[i], static_cast<const Number*>(from) + i, sizeof(Number));
  }
  return as<V>(to);
}

template <typename V>
inline std::int64_t reduce_add_epi64(V a) {
  std::uint64_t sum = 0;
  for (const std::uint64_t each : as<U64>(a).at) sum += each;
  return static_cast<std::int64_t>(sum);
}

}  // namespace test::missing
