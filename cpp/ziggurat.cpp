#include "ziggurat.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "targets.hpp"

namespace taciturn {

namespace {

__extension__ using Wide = unsigned __int128;

// r_1 to r_512: right ends of the layers for σ = 1. The lowest layer ends at r_1 too.
constexpr std::array<double, Ziggurat::layers> edges = {
#include "ziggurat_edges.inc"
};

// Relative increase of the area of a layer; more than rounding widths to integers takes away.
constexpr double slack = 0x1p-14;
constexpr double log_two = 0x1.62e42fefa39efp-1;

// A word is [sign:1][unused:2][layer:9][uniform:52].
constexpr int uniform_bits = 52;
constexpr std::uint64_t uniform_mask = (std::uint64_t{1} << uniform_bits) - 1;

struct Proposal {
  int layer;
  bool negative;
  std::uint64_t magnitude;  // uniform in [0, width)
  std::uint64_t fraction;   // remainder; if it is below 2^52 mod width, the magnitude would be biased
};

Proposal propose(const Ziggurat& table, std::uint64_t word) {
  const int layer = static_cast<int>(word >> uniform_bits) & (Ziggurat::layers - 1);
  const Wide product = Wide{word & uniform_mask} * table.width[layer];
  return {layer, (word >> 63) != 0, static_cast<std::uint64_t>(product >> uniform_bits),
          static_cast<std::uint64_t>(product) & uniform_mask};
}

// Whether a proposal can be accepted without further checks.
bool plain(const Ziggurat& table, const Proposal& p) {
  return static_cast<std::int64_t>(p.magnitude) <= table.inside[p.layer] &&
         p.fraction >= table.width[p.layer] && !(p.negative && p.magnitude == 0);
}

struct OutOfWords {};

// Remaining words, for draws that need more than one.
class Stream {
 public:
  Stream(const std::uint64_t* next, const std::uint64_t* end) : next_(next), end_(end) {}

  std::uint64_t word() {
    if (next_ == end_) throw OutOfWords{};
    return *next_++;
  }

  // Uniform in [0, bound), exactly: Lemire's method.
  std::uint64_t below(std::uint64_t bound) {
    for (;;) {
      const Wide product = Wide{word()} * bound;
      if (static_cast<std::uint64_t>(product) >= (std::uint64_t{0} - bound) % bound) {
        return static_cast<std::uint64_t>(product >> 64);
      }
    }
  }

  // True with probability exp(−w), w ≥ 0. A w above 1 is divided into steps of 1.
  bool survives(double w) {
    for (; w > 1; w -= 1) {
      if (word() >= 0x5e2d58d8b3bcdf1aULL) return false;  // ⌊2^64/e⌋
    }
    return static_cast<double>(word()) * 0x1p-64 < exp_minus(w);
  }

  const std::uint64_t* position() const { return next_; }

 private:
  const std::uint64_t* next_;
  const std::uint64_t* end_;
};

double half_square(const Ziggurat& table, std::uint64_t magnitude) {
  const double ratio = static_cast<double>(magnitude) / table.sigma;
  return 0.5 * (ratio * ratio);
}

// Proposes k ≥ tail_start: cell c with probability 2^−(c+1), uniform within it. Accepted with
// probability g(k) 2^c / height[0], in two steps: f(r_1)/height[0], and g(k) 2^c / f(r_1).
std::optional<std::uint64_t> tail(const Ziggurat& table, Stream& stream) {
  constexpr double start = 0.5 * (edges[0] * edges[0]);
  if (!(static_cast<double>(stream.word()) * 0x1p-64 * table.height[0] < exp_minus(start))) {
    return std::nullopt;
  }
  std::uint64_t cell = 0;
  for (;;) {
    const std::uint64_t word = stream.word();
    cell += static_cast<std::uint64_t>(std::countr_zero(word));
    if (word != 0) break;
    if (cell > 1000) return std::nullopt;  // beyond 180 σ; keeps the product below from overflowing
  }
  const std::uint64_t magnitude =
      table.tail_start + cell * table.tail_cell + stream.below(table.tail_cell);
  const double w = half_square(table, magnitude) - start - static_cast<double>(cell) * log_two;
  if (!stream.survives(std::max(w, 0.0))) return std::nullopt;
  return magnitude;
}

// Proposal whose magnitude is exactly uniform, starting with the given word. A uniform that would
// bias the magnitude is redrawn with the same layer and sign: redrawing the layer as well would make
// layers that reject more uniforms less likely.
Proposal propose_exactly(const Ziggurat& table, std::uint64_t word, Stream& stream) {
  for (;;) {
    const Proposal p = propose(table, word);
    const std::uint64_t width = table.width[p.layer];
    if (p.fraction >= width || p.fraction >= (uniform_mask + 1) % width) return p;
    word = (word & ~uniform_mask) | (stream.word() & uniform_mask);
  }
}

// Complete draw, starting with the given word.
std::int64_t draw(const Ziggurat& table, std::uint64_t word, Stream& stream) {
  for (;; word = stream.word()) {
    const Proposal p = propose_exactly(table, word, stream);
    std::uint64_t magnitude = p.magnitude;
    if (p.layer == 0 && magnitude >= table.tail_start) {
      const auto found = tail(table, stream);
      if (!found) continue;
      magnitude = *found;
    } else if (static_cast<std::int64_t>(magnitude) > table.inside[p.layer]) {
      const double level = static_cast<double>(stream.word()) * 0x1p-64;
      const double value = exp_minus(half_square(table, magnitude));
      if (!(table.lower[p.layer] + table.height[p.layer] * level < value)) continue;
    }
    if (p.negative && magnitude == 0) continue;
    const auto k = static_cast<std::int64_t>(magnitude);
    return p.negative ? -k : k;
  }
}

using Pending = std::vector<std::uint32_t>;

void fill_portable(const Ziggurat& table, const std::uint64_t* words, std::int64_t* out,
                   std::size_t begin, std::size_t count, Pending& pending) {
  for (std::size_t i = begin; i < count; ++i) {
    const Proposal p = propose(table, words[i]);
    const auto k = static_cast<std::int64_t>(p.magnitude);
    out[i] = p.negative ? -k : k;
    if (!plain(table, p)) pending.push_back(static_cast<std::uint32_t>(i));
  }
}

#if defined(TACITURN_X86)
// Same results as fill_portable, eight draws at a time.
TACITURN_AVX512 void fill_avx512(const Ziggurat& table, const std::uint64_t* words,
                                 std::int64_t* out, std::size_t count, Pending& pending) {
  const __m512i zero = _mm512_setzero_si512();
  const __m512i layer_mask = _mm512_set1_epi64(Ziggurat::layers - 1);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m512i word = _mm512_loadu_si512(words + i);
    const __m512i layer = _mm512_and_si512(_mm512_srli_epi64(word, uniform_bits), layer_mask);
    const __m512i width = _mm512_i64gather_epi64(layer, table.width.data(), 8);
    const __m512i inside = _mm512_i64gather_epi64(layer, table.inside.data(), 8);
    // The multiplication uses the low 52 bits of each factor: the uniform part of the word.
    const __m512i magnitude = _mm512_madd52hi_epu64(zero, word, width);
    const __m512i fraction = _mm512_madd52lo_epu64(zero, word, width);
    const __mmask8 negative = _mm512_movepi64_mask(word);
    const __mmask8 is_plain =
        _mm512_cmple_epi64_mask(magnitude, inside) & _mm512_cmpge_epu64_mask(fraction, width) &
        static_cast<__mmask8>(~(negative & _mm512_cmpeq_epi64_mask(magnitude, zero)));
    _mm512_storeu_si512(out + i, _mm512_mask_sub_epi64(magnitude, negative, zero, magnitude));
    for (unsigned left = static_cast<__mmask8>(~is_plain); left != 0; left &= left - 1) {
      pending.push_back(static_cast<std::uint32_t>(i + std::countr_zero(left)));
    }
  }
  fill_portable(table, words, out, i, count, pending);
}

// Same results as fill_portable, four draws at a time.
TACITURN_AVX2 void fill_avx2(const Ziggurat& table, const std::uint64_t* words, std::int64_t* out,
                             std::size_t count, Pending& pending) {
  // Both factors are below 2^52. Their product is that of two halves of 26 bits each.
  constexpr int half = uniform_bits / 2;
  const __m256i zero = _mm256_setzero_si256();
  const __m256i half_mask = _mm256_set1_epi64x((std::int64_t{1} << half) - 1);
  const __m256i mask = _mm256_set1_epi64x(static_cast<std::int64_t>(uniform_mask));
  const __m256i layer_mask = _mm256_set1_epi64x(Ziggurat::layers - 1);
  const auto* widths = reinterpret_cast<const long long*>(table.width.data());
  const auto* insides = reinterpret_cast<const long long*>(table.inside.data());
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const __m256i word = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words + i));
    const __m256i layer = _mm256_and_si256(_mm256_srli_epi64(word, uniform_bits), layer_mask);
    const __m256i width = _mm256_i64gather_epi64(widths, layer, 8);
    const __m256i inside = _mm256_i64gather_epi64(insides, layer, 8);
    const __m256i low = _mm256_and_si256(word, half_mask);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi64(word, half), half_mask);
    const __m256i width_low = _mm256_and_si256(width, half_mask);
    const __m256i width_high = _mm256_srli_epi64(width, half);
    const __m256i middle = _mm256_add_epi64(_mm256_mul_epu32(high, width_low),
                                            _mm256_mul_epu32(low, width_high));
    const __m256i bottom = _mm256_add_epi64(
        _mm256_mul_epu32(low, width_low),
        _mm256_slli_epi64(_mm256_and_si256(middle, half_mask), half));
    const __m256i fraction = _mm256_and_si256(bottom, mask);
    const __m256i magnitude = _mm256_add_epi64(
        _mm256_add_epi64(_mm256_mul_epu32(high, width_high), _mm256_srli_epi64(middle, half)),
        _mm256_srli_epi64(bottom, uniform_bits));
    const __m256i negative = _mm256_cmpgt_epi64(zero, word);
    const __m256i refused = _mm256_or_si256(
        _mm256_or_si256(_mm256_cmpgt_epi64(magnitude, inside), _mm256_cmpgt_epi64(width, fraction)),
        _mm256_and_si256(negative, _mm256_cmpeq_epi64(magnitude, zero)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i),
                        _mm256_sub_epi64(_mm256_xor_si256(magnitude, negative), negative));
    auto left = static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(refused)));
    for (; left != 0; left &= left - 1) {
      pending.push_back(static_cast<std::uint32_t>(i + std::countr_zero(left)));
    }
  }
  fill_portable(table, words, out, i, count, pending);
}
#endif

}  // namespace

double exp_minus(double w) {
  // w = n ln 2 + r with |r| ≤ (ln 2)/2. ln 2 is split into two parts; n times the first is exact.
  constexpr double log_two_high = 0x1.62e42fee00000p-1;
  constexpr double log_two_low = 0x1.a39ef35793c76p-33;
  const double n = std::nearbyint(w / log_two);
  const double r = (w - n * log_two_high) - n * log_two_low;
  // Taylor series of exp(−r) = 1 − r(1 − r/2(1 − r/3(…))); the first omitted term is below 1e-17.
  double series = 1;
  for (int k = 13; k > 0; --k) series = 1 - r / k * series;
  return std::ldexp(series, -static_cast<int>(n));
}

Ziggurat::Ziggurat(double scale) : sigma(scale) {
  if (!(scale >= sigma_min && scale <= sigma_max)) {
    throw std::invalid_argument("sigma must be between 2^20 and 2^48 grid steps");
  }
  const double first = edges[0];
  tail_start = static_cast<std::uint64_t>(first * sigma) + 2;
  tail_cell = static_cast<std::uint64_t>(log_two / first * sigma) + 2;
  const double unit_area = exp_minus(0.5 * (first * first)) * (first + 2 * log_two / first);
  const double area = unit_area * (1 + slack) * sigma;

  double sum = 0, rest = 0;  // Σ height by compensated summation
  for (int i = 0; i < layers; ++i) {
    width[i] = i == 0 ? tail_start + 2 * tail_cell
                      : static_cast<std::uint64_t>(edges[i - 1] * sigma) + 2;
    height[i] = area / static_cast<double>(width[i]);
    lower[i] = sum;
    const double term = height[i] + rest;
    const double next = sum + term;
    rest = term - (next - sum);
    sum = next;

    const double above = edges[i];  // right end of the next layer
    const double square = above * above - 2.001 * slack;
    inside[i] = square > 0 ? static_cast<std::int64_t>(std::sqrt(square) * sigma) - 1 : -1;
  }
}

std::optional<std::size_t> Ziggurat::fill(const std::uint64_t* words, std::size_t word_count,
                                          std::int64_t* out, std::size_t count,
                                          InstructionSet set) const {
  Pending pending;
  pending.reserve(count / 64 + 64);
#if defined(TACITURN_X86)
  if (set == InstructionSet::avx512) {
    fill_avx512(*this, words, out, count, pending);
  } else if (set == InstructionSet::avx2) {
    fill_avx2(*this, words, out, count, pending);
  } else
#endif
  {
    fill_portable(*this, words, out, 0, count, pending);
  }
  Stream stream(words + count, words + word_count);
  try {
    for (const std::uint32_t i : pending) out[i] = draw(*this, words[i], stream);
  } catch (const OutOfWords&) {
    return std::nullopt;
  }
  return static_cast<std::size_t>(stream.position() - words);
}

}  // namespace taciturn
