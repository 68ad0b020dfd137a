#include "top_k.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <stdexcept>
#include <vector>

namespace tacit {

namespace {

constexpr std::size_t lanes = Catalogue::lanes;
constexpr std::size_t together = 8;  // users whose scores are computed together
constexpr std::size_t block = 32;    // items that are skipped together if none is good enough
constexpr float worst = -std::numeric_limits<float>::infinity();

struct Found {
  float score;
  std::int32_t item;
};

// Whether one comes before the other: by score, then by index.
inline bool better(const Found& a, const Found& b) {
  return a.score > b.score || (a.score == b.score && a.item < b.item);
}

typedef float Lanes __attribute__((vector_size(lanes * sizeof(float))));

inline __attribute__((always_inline)) Lanes load(const float* from) {
  Lanes vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}

// The scores of `Groups` groups of items, from `group` on, for `together` users.
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
    float* to = scores + (u * catalogue.groups + group) * lanes;
    std::memcpy(to, sums[u], sizeof sums[u]);
  }
}

// The scores of all items for `together` users; scores[user, item].
inline __attribute__((always_inline)) void score(const Catalogue& catalogue,
                                                 const float* const* users, float* scores) {
  std::size_t group = 0;
  for (; group + 2 <= catalogue.groups; group += 2) {
    score_groups<2>(catalogue, users, group, scores);
  }
  if (group < catalogue.groups) score_groups<1>(catalogue, users, group, scores);
}

// Whether any of some scores reaches a bound.
inline __attribute__((always_inline)) bool any_from(const float* scores, std::size_t size,
                                                    float bound) {
  int any = 0;
  for (std::size_t i = 0; i < size; ++i) any |= scores[i] >= bound;
  return any != 0;
}

// A score that at least `count` items reach: the largest of every 32nd item, and of those the
// count-th. It leaves few items to look at closely.
inline __attribute__((always_inline)) float reached(const float* scores, std::size_t groups,
                                                    std::size_t count) {
  constexpr std::size_t sets = 2;
  if (count > sets * lanes || groups < 2 * sets) return worst;
  Lanes largest[sets] = {load(scores), load(scores + lanes)};
  for (std::size_t group = sets; group < groups; ++group) {
    const Lanes next = load(scores + group * lanes);
    Lanes& now = largest[group % sets];
    now = next > now ? next : now;
  }
  float all[sets * lanes];
  std::memcpy(all, largest, sizeof all);
  std::nth_element(all, all + count - 1, all + sets * lanes, std::greater<float>());
  return all[count - 1];
}

// Keeps the best so far as a heap with the worst of them in front.
class Best {
 public:
  explicit Best(std::size_t count) : count_(count) { heap_.reserve(count); }

  void offer(Found found) {
    if (heap_.size() == count_) {
      if (!better(found, heap_.front())) return;
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
    heap_.clear();
  }

 private:
  std::size_t count_;
  std::vector<Found> heap_;
};

inline __attribute__((always_inline)) void run(const Catalogue& catalogue, const float* users,
                                               const Excluded& excluded, std::size_t begin,
                                               std::size_t end, std::size_t count,
                                               std::int32_t* items, float* scores) {
  const std::size_t total = catalogue.groups * lanes;
  std::vector<float> kept(together * total);
  Best best(count);
  for (std::size_t first = begin; first < end; first += together) {
    const std::size_t size = std::min(together, end - first);
    const float* rows[together];
    for (std::size_t u = 0; u < together; ++u) {
      rows[u] = users + (first + std::min(u, size - 1)) * catalogue.width;
    }
    score(catalogue, rows, kept.data());
    for (std::size_t u = 0; u < size; ++u) {
      const std::size_t user = first + u;
      float* row = kept.data() + u * total;
      for (std::int64_t e = excluded.starts[user]; e < excluded.starts[user + 1]; ++e) {
        const auto item = static_cast<std::uint32_t>(excluded.columns[e]);
        if (item >= total) throw std::out_of_range("an excluded item is not there");
        row[item] = worst;
      }
      const float bound = reached(row, catalogue.groups, count);
      for (std::size_t from = 0; from < total; from += block) {
        const std::size_t to = std::min(from + block, total);
        if (!any_from(row + from, to - from, bound)) continue;
        for (std::size_t i = from; i < to; ++i) {
          if (row[i] >= bound && row[i] > worst) {
            best.offer({row[i], static_cast<std::int32_t>(i)});
          }
        }
      }
      best.store(items + user * count, scores + user * count);
    }
  }
}

#if defined(__x86_64__)
// The same code for wider vectors.
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"))) void
run_avx512(const Catalogue& catalogue, const float* users, const Excluded& excluded,
           std::size_t begin, std::size_t end, std::size_t count, std::int32_t* items,
           float* scores) {
  run(catalogue, users, excluded, begin, end, count, items, scores);
}
#endif

}  // namespace

void top_k(const Catalogue& catalogue, const float* users, const Excluded& excluded,
           std::size_t begin, std::size_t end, std::size_t count, std::int32_t* items,
           float* scores, InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::avx512) {
    return run_avx512(catalogue, users, excluded, begin, end, count, items, scores);
  }
#endif
  static_cast<void>(set);
  run(catalogue, users, excluded, begin, end, count, items, scores);
}

}  // namespace tacit
