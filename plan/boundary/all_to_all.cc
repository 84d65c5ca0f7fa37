#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "plan/boundary/internal/intervals.h"
#include "plan/boundary/internal/steps.h"

namespace isthmus::plan::internal {
namespace {

struct Message {
  base::Rank from;
  base::Rank to;
  Interval tokens;
};

/// Tokens every rank has been asked to send so far.
using Load = std::vector<std::int64_t>;

base::Rank ChooseSource(const Holder& holder, const Need& need, const Load& load) {
  if (std::find(holder.ranks.begin(), holder.ranks.end(), need.rank) != holder.ranks.end()) {
    return need.rank;
  }
  const std::size_t size = holder.ranks.size();
  base::Rank best = holder.ranks[static_cast<std::size_t>(need.lane_index) % size];
  for (std::size_t further = 1; further < size; ++further) {
    const base::Rank candidate =
        holder.ranks[(static_cast<std::size_t>(need.lane_index) + further) % size];
    if (load[candidate.index()] < load[best.index()]) {
      best = candidate;
    }
  }
  return best;
}

std::vector<Message> Route(std::span<const Holder> holders, std::span<const Need> needs,
                           std::size_t num_ranks) {
  Load load(num_ranks, 0);
  std::vector<Message> messages;
  for (const Need& need : needs) {
    std::int64_t found = 0;
    for (const Holder& holder : holders) {
      const Interval common = Intersect(holder.tokens, need.tokens);
      if (common.empty()) {
        continue;
      }
      const base::Rank from = ChooseSource(holder, need, load);
      if (from != need.rank) {
        load[from.index()] += common.size();
      }
      messages.push_back({from, need.rank, common});
      found += common.size();
    }
    ISTHMUS_CHECK(found == need.tokens.size(), "rank {} finds {} of {} tokens", need.rank.value(),
                  found, need.tokens.size());
  }
  return messages;
}

/// Ranks joined by messages, as sets with the lowest rank for a name.
class Components {
 public:
  explicit Components(std::size_t num_ranks) : parent_(num_ranks) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t Find(std::size_t rank) {
    while (parent_[rank] != rank) {
      parent_[rank] = parent_[parent_[rank]];
      rank = parent_[rank];
    }
    return rank;
  }
  void Join(std::size_t a, std::size_t b) {
    const auto [low, high] = std::minmax({Find(a), Find(b)});
    parent_[high] = low;
  }

 private:
  std::vector<std::size_t> parent_;
};

std::vector<Interval>& PartsOf(RankBoundary& rank, Direction direction) {
  return direction == Direction::kForward ? rank.all_to_all_forward : rank.all_to_all_backward;
}

std::size_t PlaceIn(const std::vector<base::Rank>& members, base::Rank rank) {
  return static_cast<std::size_t>(std::lower_bound(members.begin(), members.end(), rank) -
                                  members.begin());
}

/// The size of the uniform all-to-all whose busiest member moves as much (boundary.h).
std::int64_t EquivalentTokens(const std::vector<base::Rank>& members,
                              const std::vector<Message>& messages) {
  std::vector<std::int64_t> sent(members.size(), 0);
  std::vector<std::int64_t> received(members.size(), 0);
  for (const Message& message : messages) {
    if (message.from != message.to) {
      sent[PlaceIn(members, message.from)] += message.tokens.size();
      received[PlaceIn(members, message.to)] += message.tokens.size();
    }
  }
  const std::int64_t busiest = std::max(*std::max_element(sent.begin(), sent.end()),
                                        *std::max_element(received.begin(), received.end()));
  const auto size = static_cast<std::int64_t>(members.size());
  return (busiest * size + size - 2) / (size - 1);
}

void AddComponent(Boundary& boundary, Direction direction, const std::vector<base::Rank>& members,
                  const std::vector<Message>& messages) {
  std::vector<std::int64_t> sent(members.size(), 0);
  for (const base::Rank member : members) {
    PartsOf(At(boundary, member), direction).assign(members.size(), Interval{});
  }
  for (const Message& message : messages) {
    PartsOf(At(boundary, message.from), direction)[PlaceIn(members, message.to)] = message.tokens;
    sent[PlaceIn(members, message.from)] += message.tokens.size();
  }
  AddSizedCollective(boundary, direction, CollectiveKind::kAllToAllV, members, sent,
                     EquivalentTokens(members, messages));
}

}  // namespace

void AddAllToAll(Boundary& boundary, Direction direction, std::span<const Holder> holders,
                 std::span<const Need> needs) {
  const std::size_t num_ranks = boundary.ranks.size();
  const std::vector<Message> messages = Route(holders, needs, num_ranks);
  Components components(num_ranks);
  std::vector<bool> exchanges(num_ranks, false);
  for (const Message& message : messages) {
    if (message.from != message.to) {
      components.Join(message.from.index(), message.to.index());
      exchanges[message.from.index()] = exchanges[message.to.index()] = true;
    }
  }
  std::vector<std::vector<base::Rank>> members(num_ranks);  // by lowest rank of the component
  std::vector<std::vector<Message>> inside(num_ranks);
  for (std::size_t rank = 0; rank < num_ranks; ++rank) {
    if (exchanges[rank]) {
      members[components.Find(rank)].emplace_back(rank);
    }
  }
  for (const Message& message : messages) {
    inside[components.Find(message.from.index())].push_back(message);
  }
  for (std::size_t lowest = 0; lowest < num_ranks; ++lowest) {
    if (!members[lowest].empty()) {
      AddComponent(boundary, direction, members[lowest], inside[lowest]);
    }
  }
  for (const Holder& holder : holders) {
    for (const base::Rank rank : holder.ranks) {
      RankBoundary& entry = At(boundary, rank);
      if (!exchanges[rank.index()] && !NeededOf(entry, direction).empty()) {
        AddSelect(entry, direction, holder.tokens);
      }
    }
  }
}

}  // namespace isthmus::plan::internal
