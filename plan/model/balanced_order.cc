#include "plan/model/balanced_order.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <tuple>

#include "base/check.h"

namespace isthmus::plan {
namespace {

// Loads of the parts as samples are put into them.
class Parts {
 public:
  explicit Parts(const SampleParts& parts)
      : parts_(parts),
        shards_(static_cast<std::size_t>(parts.num_shards)),
        rounds_(static_cast<std::size_t>(parts.num_microbatches)),
        microbatches_(shards_.size() * rounds_.size()) {}

  // The microbatch, numbered shard by shard, that a sample goes to.
  std::size_t Choose() const {
    const std::int64_t room = parts_.num_microbatches * parts_.microbatch_size;
    const std::size_t shard = Least(shards_.size(), [&](std::size_t at) {
      return std::tuple(shards_[at].count == room, shards_[at].load, std::int64_t{0});
    });
    const std::size_t first = shard * rounds_.size();
    return first + Least(rounds_.size(), [&](std::size_t at) {
             const Part& here = microbatches_[first + at];
             return std::tuple(here.count == parts_.microbatch_size, here.load, rounds_[at].load);
           });
  }
  void Put(std::size_t microbatch, std::int64_t load) {
    for (Part* part : {&microbatches_[microbatch], &shards_[microbatch / rounds_.size()],
                       &rounds_[microbatch % rounds_.size()]}) {
      ++part->count;
      part->load += load;
    }
  }
  // The largest load of a shard, of a microbatch, of a round of microbatches.
  std::tuple<std::int64_t, std::int64_t, std::int64_t> Largest() const {
    const auto largest = [](const std::vector<Part>& parts) {
      return std::ranges::max_element(parts, {}, &Part::load)->load;
    };
    return {largest(shards_), largest(microbatches_), largest(rounds_)};
  }

 private:
  struct Part {
    std::int64_t count = 0;
    std::int64_t load = 0;
  };
  template <typename Key>
  static std::size_t Least(std::size_t size, Key key) {
    std::size_t least = 0;
    for (std::size_t at = 1; at < size; ++at) {
      if (key(at) < key(least)) least = at;
    }
    return least;
  }

  SampleParts parts_;
  std::vector<Part> shards_;
  std::vector<Part> rounds_;
  std::vector<Part> microbatches_;
};

}  // namespace

std::vector<std::int32_t> BalancedOrder(std::span<const std::int64_t> loads,
                                        const SampleParts& parts) {
  const std::size_t size = loads.size();
  ISTHMUS_CHECK(static_cast<std::int64_t>(size) == parts.num_samples(), "{} loads of {} samples",
                size, parts.num_samples());
  const auto per_microbatch = static_cast<std::size_t>(parts.microbatch_size);
  std::vector<std::int32_t> falling(size);
  std::iota(falling.begin(), falling.end(), 0);
  std::stable_sort(falling.begin(), falling.end(), [&](std::int32_t a, std::int32_t b) {
    return loads[static_cast<std::size_t>(a)] > loads[static_cast<std::size_t>(b)];
  });
  Parts balanced(parts);
  Parts as_drawn(parts);
  std::vector<std::vector<std::int32_t>> members(size / per_microbatch);
  for (const std::int32_t sample : falling) {
    const auto number = static_cast<std::size_t>(sample);
    const std::size_t microbatch = balanced.Choose();
    balanced.Put(microbatch, loads[number]);
    as_drawn.Put(number / per_microbatch, loads[number]);
    members[microbatch].push_back(sample);
  }
  if (balanced.Largest() >= as_drawn.Largest()) return {};
  std::vector<std::int32_t> order;
  for (std::vector<std::int32_t>& microbatch : members) {
    std::ranges::sort(microbatch);
    order.insert(order.end(), microbatch.begin(), microbatch.end());
  }
  return order;
}

}  // namespace isthmus::plan
