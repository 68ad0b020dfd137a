#include "top_k.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <vector>

#include "panel.hpp"

namespace taciturn {

namespace {

using panel::worst;

// Bytes of a panel of items: for several users, part of the second-level cache; for one, of the first.
constexpr std::size_t panel_bytes = 128 << 10, panel_bytes_of_one = 16 << 10;
constexpr std::size_t items_of_one = 1024;  // items that are scored at a time without a panel
constexpr std::size_t classes = 32;  // see initial_bound()

struct Found {
  float score;
  std::int32_t item;
};

// Order of results: by descending score, then by index.
constexpr auto better = [](const Found& a, const Found& b) {
  return a.score > b.score || (a.score == b.score && a.item < b.item);
};

// Bit mask of those of the scores of a group that are at least the bound.
struct Portable : panel::PortableTile {
  static std::uint32_t at_least(const float* scores, float bound) {
    const auto is_found = load<Vector>(scores) >= bound;
    std::uint64_t halves[2];
    static_assert(sizeof halves == sizeof is_found);
    std::memcpy(halves, &is_found, sizeof halves);
    if ((halves[0] | halves[1]) == 0) return 0;
    std::uint32_t found = 0;
    for (std::size_t i = 0; i < lanes; ++i) found |= std::uint32_t{scores[i] >= bound} << i;
    return found;
  }
};

#if defined(TACITURN_X86)
struct Avx2 : panel::Avx2Tile {
  TACITURN_AVX2 static std::uint32_t at_least(const float* scores, float bound) {
    const __m256 is_found = _mm256_cmp_ps(_mm256_loadu_ps(scores), _mm256_set1_ps(bound), _CMP_GE_OQ);
    return static_cast<std::uint32_t>(_mm256_movemask_ps(is_found));
  }
};

struct Avx512 : panel::Avx512Tile {
  TACITURN_AVX512_LOOPS static std::uint32_t at_least(const float* scores, float bound) {
    return _mm512_cmp_ps_mask(_mm512_loadu_ps(scores), _mm512_set1_ps(bound), _CMP_GE_OQ);
  }
};
#endif

// Lower bound of the count-th best score: items are divided into classes by index, and the bound is the
// count-th largest of their maxima. It excludes most items from further checks.
template <typename Tile>
inline __attribute__((always_inline)) float initial_bound(const float* scores, std::size_t groups,
                                                          std::size_t count) {
  using Vector = typename Tile::Vector;
  constexpr std::size_t vectors = classes / Tile::lanes;
  if (count > classes || groups < 2 * vectors) return worst;
  Vector largest[vectors];
  for (auto& each : largest) each = Vector{} + worst;  // NaN never replaces a maximum
  for (std::size_t group = 0; group + vectors <= groups; group += vectors) {
    for (std::size_t v = 0; v < vectors; ++v) {
      const auto next = load<Vector>(scores + (group + v) * Tile::lanes);
      largest[v] = next > largest[v] ? next : largest[v];
    }
  }
  float all[classes];
  std::memcpy(all, largest, sizeof largest);
  std::nth_element(all, all + count - 1, all + classes, std::greater<float>());
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

// Adds the items of some groups, of which `first` is the first, that are better than the worst of the
// best so far.
template <typename Tile>
inline __attribute__((always_inline)) void take(const float* scores, std::size_t first,
                                                std::size_t groups, std::size_t count,
                                                Best& best) {
  float bound = best.is_full() ? best.lowest() : initial_bound<Tile>(scores, groups, count);
  for (std::size_t group = 0; group < groups; ++group, scores += Tile::lanes) {
    for (auto found = Tile::at_least(scores, bound); found != 0; found &= found - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(found));
      // A later item does not win a tie.
      if (!(scores[lane] > (best.is_full() ? best.lowest() : worst))) continue;
      best.add({scores[lane], static_cast<std::int32_t>(first + group * Tile::lanes + lane)});
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
    if (*first < 0 || static_cast<std::size_t>(last[-1]) >= catalogue.items) {
      throw std::out_of_range("an excluded item is out of range");
    }
  }
}

// Gives the worst score to a user's excluded items among the items [first, last).
inline void exclude(const Excluded& excluded, std::size_t user, std::size_t first,
                    std::size_t last, float* scores) {
  const std::int32_t* stop = excluded.columns + excluded.starts[user + 1];
  const auto from = static_cast<std::int32_t>(first), to = static_cast<std::int32_t>(last);
  const std::int32_t* item = std::lower_bound(excluded.columns + excluded.starts[user], stop, from);
  for (; item != stop && *item < to; ++item) scores[*item - from] = worst;
}

// Number of items in a panel: a multiple of all groups that are scored together.
template <typename Tile>
std::size_t panel_items(std::size_t users, std::size_t width) {
  constexpr std::size_t multiple = Tile::lanes * Tile::vectors_of_one;
  const std::size_t bytes = users == 1 ? panel_bytes_of_one : panel_bytes;
  return std::max<std::size_t>(1, bytes / (sizeof(float) * (1 + width) * multiple)) * multiple;
}

// One user: every item is read once, so it is not copied to a panel. Needs at least one whole group of
// items that are read together.
template <typename Tile>
inline __attribute__((always_inline)) void run_one(const Catalogue& catalogue, const float* user,
                                                   const Excluded& excluded, std::size_t number,
                                                   Best& best, std::size_t count) {
  constexpr std::size_t together = Tile::together;
  static_assert(items_of_one % Tile::lanes == 0 && items_of_one % together == 0);
  float scores[items_of_one], last_scores[together];
  for (std::size_t first = 0; first < catalogue.items; first += items_of_one) {
    const std::size_t size = std::min(items_of_one, catalogue.items - first);
    const std::size_t groups = (size + Tile::lanes - 1) / Tile::lanes;
    Tile::score_rows(catalogue, first, size / together, user, scores);
    if (const std::size_t left = size % together; left > 0) {
      // The last items, with some before them.
      Tile::score_rows(catalogue, catalogue.items - together, 1, user, last_scores);
      std::copy(last_scores + together - left, last_scores + together, scores + size - left);
    }
    std::fill(scores + size, scores + groups * Tile::lanes, worst);
    exclude(excluded, number, first, first + size, scores);
    take<Tile>(scores, first, groups, count, best);
  }
}

// The outer loop is over panels of items, so that a panel is filled once for many users.
template <typename Tile>
inline __attribute__((always_inline)) void run(const Catalogue& catalogue, const float* users,
                                               const Excluded& excluded, std::size_t begin,
                                               std::size_t end, const Lists& lists) {
  static_assert(Tile::vectors_of_one % Tile::vectors == 0);
  check(catalogue, excluded, begin, end);
  const std::size_t width = catalogue.width(), step = panel_items<Tile>(end - begin, width);
  std::vector<Best> best;
  best.reserve(end - begin);
  for (std::size_t user = begin; user < end; ++user) best.emplace_back(lists.count);
  if constexpr (Tile::reads_rows) {
    if (end - begin == 1 && catalogue.items >= Tile::together) {
      run_one<Tile>(catalogue, users + begin * width, excluded, begin, best.front(), lists.count);
      return best.front().store(lists.items + begin * lists.count, lists.scores + begin * lists.count);
    }
  }
  std::vector<float> items(step * (1 + width)), scores(Tile::users * step);
  for (std::size_t first = 0; first < catalogue.items; first += step) {
    const std::size_t last = std::min(first + step, catalogue.items);
    const std::size_t groups = (last - first + Tile::lanes - 1) / Tile::lanes;
    panel::fill<Tile>(catalogue, first, last, items.data());
    for (std::size_t user = begin; user < end;) {
      const std::size_t together = end - user < Tile::users ? 1 : Tile::users;
      const float* rows[Tile::users];
      for (std::size_t u = 0; u < together; ++u) rows[u] = users + (user + u) * width;
      if (together == 1) {
        panel::score<Tile, 1, Tile::vectors_of_one>(items.data(), groups, width, rows,
                                                    scores.data(), step);
      } else {
        panel::score<Tile, Tile::users, Tile::vectors>(items.data(), groups, width, rows,
                                                       scores.data(), step);
      }
      for (std::size_t u = 0; u < together; ++u, ++user) {
        float* row = scores.data() + u * step;
        exclude(excluded, user, first, last, row);
        take<Tile>(row, first, groups, lists.count, best[user - begin]);
      }
    }
  }
  for (std::size_t user = begin; user < end; ++user) {
    best[user - begin].store(lists.items + user * lists.count, lists.scores + user * lists.count);
  }
}

#if defined(TACITURN_X86)
TACITURN_AVX512_LOOPS void run_avx512(const Catalogue& catalogue, const float* users,
                                      const Excluded& excluded, std::size_t begin, std::size_t end,
                                      const Lists& lists) {
  run<Avx512>(catalogue, users, excluded, begin, end, lists);
}

TACITURN_AVX2_LOOPS void run_avx2(const Catalogue& catalogue, const float* users,
                                  const Excluded& excluded, std::size_t begin, std::size_t end,
                                  const Lists& lists) {
  run<Avx2>(catalogue, users, excluded, begin, end, lists);
}
#endif

}  // namespace

void top_k(const Catalogue& catalogue, const float* users, const Excluded& excluded,
           std::size_t begin, std::size_t end, const Lists& lists, InstructionSet set) {
#if defined(TACITURN_X86)
  if (set == InstructionSet::avx512) {
    return run_avx512(catalogue, users, excluded, begin, end, lists);
  }
  if (set == InstructionSet::avx2) {
    return run_avx2(catalogue, users, excluded, begin, end, lists);
  }
#endif
  static_cast<void>(set);
  run<Portable>(catalogue, users, excluded, begin, end, lists);
}

}  // namespace taciturn
