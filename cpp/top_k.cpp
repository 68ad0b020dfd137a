#include "top_k.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <stdexcept>
#include <vector>

#include "targets.hpp"
#include "lanes.hpp"

namespace taciturn {

namespace {

static_assert(lanes == Catalogue::lanes);

constexpr std::size_t together = 12;  // users whose scores are computed together
constexpr std::size_t tile = 128;     // groups of items that are scored at a time
constexpr float worst = -std::numeric_limits<float>::infinity();

struct Found {
  float score;
  std::int32_t item;
};

// Order of results: by descending score, then by index.
constexpr auto better = [](const Found& a, const Found& b) {
  return a.score > b.score || (a.score == b.score && a.item < b.item);
};

// Scores of `Groups` groups of items, starting at `group`, for `together` users. The scores of the next
// user follow a tile later.
template <std::size_t Groups>
inline __attribute__((always_inline)) void score_groups(const Catalogue& catalogue,
                                                        const float* const* users,
                                                        std::size_t group, float* scores) {
  const std::size_t size = catalogue.width * lanes;
  const float* factors = catalogue.factors + group * size;
  Lanes sums[together][Groups];
  for (auto& sum : sums) {
    for (std::size_t g = 0; g < Groups; ++g) sum[g] = load(catalogue.biases + (group + g) * lanes);
  }
  for (std::size_t k = 0; k < catalogue.width; ++k) {
    Lanes items[Groups];
    for (std::size_t g = 0; g < Groups; ++g) items[g] = load(factors + g * size + k * lanes);
    for (std::size_t u = 0; u < together; ++u) {
      for (std::size_t g = 0; g < Groups; ++g) sums[u][g] += users[u][k] * items[g];
    }
  }
  for (std::size_t u = 0; u < together; ++u) {
    std::memcpy(scores + u * tile * lanes, sums[u], sizeof sums[u]);
  }
}

// Scores of the groups [first, last) of items for `together` users.
inline __attribute__((always_inline)) void score(const Catalogue& catalogue,
                                                 const float* const* users, std::size_t first,
                                                 std::size_t last, float* scores) {
  for (; first + 2 <= last; first += 2, scores += 2 * lanes) {
    score_groups<2>(catalogue, users, first, scores);
  }
  if (first < last) score_groups<1>(catalogue, users, first, scores);
}

// Bit mask of those of 16 scores that are at least the bound.
struct Portable {
  static std::uint32_t at_least(const float* scores, float bound) {
    std::uint32_t found = 0;
    for (std::size_t i = 0; i < lanes; ++i) found |= std::uint32_t{scores[i] >= bound} << i;
    return found;
  }
};

#if defined(TACITURN_X86)
struct Avx512 {
  __attribute__((target("avx512f"))) static std::uint32_t at_least(const float* scores, float bound) {
    return _mm512_cmp_ps_mask(_mm512_loadu_ps(scores), _mm512_set1_ps(bound), _CMP_GE_OQ);
  }
};
#endif

inline __attribute__((always_inline)) void raise(Lanes& largest, const float* scores) {
  const Lanes next = load(scores);
  largest = next > largest ? next : largest;
}

// Lower bound of the count-th best score: items are divided into 32 classes by index, and the bound is
// the count-th largest of their maxima. It excludes most items from further checks.
inline __attribute__((always_inline)) float initial_bound(const float* scores, std::size_t groups,
                                                    std::size_t count) {
  if (count > 2 * lanes || groups < 4) return worst;
  Lanes evens = Lanes{} + worst, odds = evens;  // NaN never replaces a maximum
  std::size_t group = 0;
  for (; group + 2 <= groups; group += 2) {
    raise(evens, scores + group * lanes);
    raise(odds, scores + (group + 1) * lanes);
  }
  if (group < groups) raise(evens, scores + group * lanes);
  float all[2 * lanes];
  std::memcpy(all, &evens, sizeof evens);
  std::memcpy(all + lanes, &odds, sizeof odds);
  std::nth_element(all, all + count - 1, all + 2 * lanes, std::greater<float>());
  return all[count - 1];
}

// Best items of a user so far, in a heap with the worst of them in front.
class Best {
 public:
  explicit Best(std::size_t count) : count_(count) { heap_.reserve(count); }

  bool is_full() const { return heap_.size() == count_; }
  float lowest() const { return heap_.front().score; }

  void add(Found found) {
    if (is_full()) {
      std::pop_heap(heap_.begin(), heap_.end(), better);
      heap_.back() = found;
    } else {
      heap_.push_back(found);
    }
    std::push_heap(heap_.begin(), heap_.end(), better);
  }

  void store(std::int32_t* items, float* scores) {
    std::sort(heap_.begin(), heap_.end(), better);
    for (std::size_t i = 0; i < count_; ++i) {
      const bool there = i < heap_.size();
      items[i] = there ? heap_[i].item : -1;
      scores[i] = there ? heap_[i].score : worst;
    }
  }

 private:
  std::size_t count_;
  std::vector<Found> heap_;
};

// Adds the items of some groups that are better than the worst of the best so far.
template <typename Instructions>
inline __attribute__((always_inline)) void take(const float* scores, std::size_t first,
                                                std::size_t groups, std::size_t count,
                                                Best& best) {
  float bound = best.is_full() ? best.lowest() : initial_bound(scores, groups, count);
  for (std::size_t group = 0; group < groups; ++group, scores += lanes) {
    for (auto found = Instructions::at_least(scores, bound); found != 0; found &= found - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(found));
      // A later item does not win a tie.
      if (!(scores[lane] > (best.is_full() ? best.lowest() : worst))) continue;
      best.add({scores[lane], static_cast<std::int32_t>((first + group) * lanes + lane)});
      if (best.is_full()) bound = best.lowest();
    }
  }
}

void check(const Catalogue& catalogue, const Excluded& excluded, std::size_t begin,
           std::size_t end) {
  for (std::size_t user = begin; user < end; ++user) {
    const std::int32_t* first = excluded.columns + excluded.starts[user];
    const std::int32_t* last = excluded.columns + excluded.starts[user + 1];
    if (first == last) continue;
    if (!std::is_sorted(first, last)) throw std::invalid_argument("excluded items must be ascending");
    if (*first < 0 || static_cast<std::size_t>(last[-1]) >= catalogue.groups * lanes) {
      throw std::out_of_range("an excluded item is out of range");
    }
  }
}

// Gives the worst score to a user's excluded items among the groups [group, stop).
inline void exclude(const Excluded& excluded, std::size_t user, std::size_t group,
                    std::size_t stop, float* scores) {
  const std::int32_t* last = excluded.columns + excluded.starts[user + 1];
  const auto from = static_cast<std::int32_t>(group * lanes);
  const auto to = static_cast<std::int32_t>(stop * lanes);
  const std::int32_t* item =
      std::lower_bound(excluded.columns + excluded.starts[user], last, from);
  for (; item != last && *item < to; ++item) scores[*item - from] = worst;
}

// The outer loop is over tiles of items, so that a tile is read once for many users.
template <typename Instructions>
inline __attribute__((always_inline)) void run(const Catalogue& catalogue, const float* users,
                                               const Excluded& excluded, std::size_t begin,
                                               std::size_t end, std::size_t count,
                                               std::int32_t* items, float* scores) {
  check(catalogue, excluded, begin, end);
  std::vector<float> tile_scores(together * tile * lanes);
  std::vector<Best> best;
  best.reserve(end - begin);
  for (std::size_t user = begin; user < end; ++user) best.emplace_back(count);
  for (std::size_t group = 0; group < catalogue.groups; group += tile) {
    const std::size_t stop = std::min(group + tile, catalogue.groups);
    for (std::size_t first = begin; first < end; first += together) {
      const std::size_t size = std::min(together, end - first);
      const float* rows[together];
      for (std::size_t u = 0; u < together; ++u) {
        rows[u] = users + (first + std::min(u, size - 1)) * catalogue.width;
      }
      score(catalogue, rows, group, stop, tile_scores.data());
      for (std::size_t u = 0; u < size; ++u) {
        float* row = tile_scores.data() + u * tile * lanes;
        exclude(excluded, first + u, group, stop, row);
        take<Instructions>(row, group, stop - group, count, best[first + u - begin]);
      }
    }
  }
  for (std::size_t user = begin; user < end; ++user) {
    best[user - begin].store(items + user * count, scores + user * count);
  }
}

#if defined(TACITURN_X86)
TACITURN_AVX512_LOOPS void run_avx512(const Catalogue& catalogue, const float* users,
                                      const Excluded& excluded, std::size_t begin, std::size_t end,
                                      std::size_t count, std::int32_t* items, float* scores) {
  run<Avx512>(catalogue, users, excluded, begin, end, count, items, scores);
}

TACITURN_AVX2_LOOPS void run_avx2(const Catalogue& catalogue, const float* users,
                                      const Excluded& excluded, std::size_t begin, std::size_t end,
                                      std::size_t count, std::int32_t* items, float* scores) {
  run<Portable>(catalogue, users, excluded, begin, end, count, items, scores);
}
#endif

}  // namespace

void top_k(const Catalogue& catalogue, const float* users, const Excluded& excluded,
           std::size_t begin, std::size_t end, std::size_t count, std::int32_t* items,
           float* scores, InstructionSet set) {
#if defined(TACITURN_X86)
  if (set == InstructionSet::avx512) {
    return run_avx512(catalogue, users, excluded, begin, end, count, items, scores);
  }
  if (set == InstructionSet::avx2) {
    return run_avx2(catalogue, users, excluded, begin, end, count, items, scores);
  }
#endif
  static_cast<void>(set);
  run<Portable>(catalogue, users, excluded, begin, end, count, items, scores);
}

}  // namespace taciturn
