// The functions of missing_intrinsics.hpp against the instructions that they stand for.
#include "support.hpp"

#if defined(__x86_64__) && !defined(TACITURN_EMULATED)
#include <immintrin.h>

#include "missing_intrinsics.hpp"
#include "targets.hpp"

namespace test {

namespace {

constexpr InstructionSet set = InstructionSet::avx512;

template <typename V>
void check_same(const V& found, const V& expected, const char* what) {
  check(std::memcmp(&found, &expected, sizeof found) == 0, what, set);
}

TACITURN_AVX512 __m512i random_vector(Random& random) {
  std::uint64_t words[8];
  for (auto& each : words) each = random.word();
  return _mm512_loadu_si512(words);
}

TACITURN_AVX512 void compare(Random& random) {
  using namespace missing;
  const __m512i a = random_vector(random), b = random_vector(random), c = random_vector(random);
  check_same(alignr_epi32(a, b, 1), _mm512_alignr_epi32(a, b, 1), "alignr_epi32");
  check_same(madd52(a, b, c, true), _mm512_madd52hi_epu64(a, b, c), "madd52hi_epu64");
  check_same(madd52(a, b, c, false), _mm512_madd52lo_epu64(a, b, c), "madd52lo_epu64");
  check(reduce_add_epi64(a) == _mm512_reduce_add_epi64(a), "reduce_add_epi64", set);

  const __m256i half = _mm512_castsi512_si256(a);
  const __m128i quarter = _mm512_castsi512_si128(a);
  check_same(converted<std::int64_t, std::int32_t, 8, __m512i>(half), _mm512_cvtepi32_epi64(half),
             "cvtepi32_epi64");
  check_same(converted<std::int64_t, std::uint32_t, 8, __m512i>(half), _mm512_cvtepu32_epi64(half),
             "cvtepu32_epi64");
  check_same(converted<std::int32_t, std::uint16_t, 16, __m512i>(half), _mm512_cvtepu16_epi32(half),
             "cvtepu16_epi32");
  check_same(converted<std::int32_t, std::uint8_t, 16, __m512i>(quarter),
             _mm512_cvtepu8_epi32(quarter), "cvtepu8_epi32");
  check_same(converted<float, std::int32_t, 16, __m512>(a), _mm512_cvtepi32_ps(a), "cvtepi32_ps");

  // Halves are ties, and some numbers are out of range.
  float reals[16];
  for (float& each : reals) {
    each = static_cast<float>(random.whole(-1000, 1000)) / 2 * (random.word() % 8 ? 1.0f : 1e9f);
  }
  const __m512 real = _mm512_loadu_ps(reals);
  check_same(cvtps_epi32<__m512i>(real), _mm512_cvtps_epi32(real), "cvtps_epi32");

  const auto mask = static_cast<unsigned>(random.word());
  std::int64_t table[64], one[8] = {}, two[8] = {};
  for (auto& each : table) each = static_cast<std::int64_t>(random.word());
  const __m512i places = _mm512_and_si512(a, _mm512_set1_epi64(63));
  check_same(i64gather_epi64(places, table, 8), _mm512_i64gather_epi64(places, table, 8),
             "i64gather_epi64");
  mask_store<std::int32_t, 16>(one, mask & 0xffff, a);
  _mm512_mask_storeu_epi32(two, static_cast<__mmask16>(mask), a);
  check_same(one, two, "mask_storeu_epi32");
  mask_store<std::int64_t, 8>(one, mask & 0xff, b);
  _mm512_mask_storeu_epi64(two, static_cast<__mmask8>(mask), b);
  check_same(one, two, "mask_storeu_epi64");
  check_same(mask_load<std::int32_t, 16, __m512i>(mask & 0xffff, table),
             _mm512_maskz_loadu_epi32(static_cast<__mmask16>(mask), table), "maskz_loadu_epi32");
  check_same(mask_load<std::int64_t, 8, __m512i>(mask & 0xff, table),
             _mm512_maskz_loadu_epi64(static_cast<__mmask8>(mask), table), "maskz_loadu_epi64");
}

}  // namespace

void test_missing_instructions() {
  if (taciturn::supported_instruction_sets().front() != set) return;
  Random random(4);
  for (int round = 0; round < 1000; ++round) compare(random);
}

}  // namespace test

#else

namespace test {

void test_missing_instructions() {}

}  // namespace test

#endif
