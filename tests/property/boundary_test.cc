// Boundaries against a map of every token: all ranks of a boundary execute their steps on one
// number a token, and must end with exactly what the definition says, whatever the layouts.

#include "plan/boundary/boundary.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/support/boundary_run.h"

namespace isthmus::plan {
namespace {

using base::Rank;
using tests::BoundaryDirection;
using tests::TokenBuffer;

/// One edge to check, and its text for messages.
struct Case {
  Layout source;
  Layout destination;
  int source_instances = 1;
  int destination_instances = 1;
  bool colocated = true;
  int num_ranks = 0;
  BoundaryTokens tokens;
};

std::string ToText(const Case& c) {
  const auto text = [](const Layout& layout) {
    return fmt::format("{} CP{} {} from {}", ToText(layout), layout.cp,
                       layout.order == AxisOrder::kTpCpDpPp ? "tp-cp-dp-pp" : "tp-cp-pp-dp",
                       layout.first_rank);
  };
  return fmt::format(
      "{} | source {} | destination {} | sample {} span {} samples {} microbatches {} counts [{}]",
      c.colocated ? "colocated" : "non-colocated", text(c.source), text(c.destination),
      c.tokens.tokens_per_sample, c.tokens.span_tokens, c.tokens.samples_per_microbatch,
      c.tokens.num_microbatches, fmt::join(c.tokens.spans_of_sample, " "));
}

std::int64_t NumSamples(const Case& c) {
  return c.tokens.samples_per_microbatch * c.tokens.num_microbatches * c.destination.dp;
}

std::uint64_t Mix(std::uint64_t value) {
  value = (value ^ (value >> 31U)) * 0x9E3779B97F4A7C15U;
  return value ^ (value >> 29U);
}
std::uint64_t Activation(std::int64_t token) {
  return Mix(static_cast<std::uint64_t>(token) * 64 + 1);
}
/// What context-parallel rank `cp` adds to the gradient of a token.
std::uint64_t Contribution(std::int64_t token, int cp) {
  return Mix(static_cast<std::uint64_t>(token) * 64 + 2 + static_cast<std::uint64_t>(cp));
}
std::uint64_t Gradient(std::int64_t token, int cp_degree) {
  std::uint64_t sum = 0;
  for (int cp = 0; cp < cp_degree; ++cp) {
    sum += Contribution(token, cp);
  }
  return sum;
}

template <typename ValueOf>
TokenBuffer Fill(const Interval& tokens, ValueOf value_of) {
  TokenBuffer buffer{tokens.begin, {}};
  for (std::int64_t token = tokens.begin; token < tokens.end; ++token) {
    buffer.values.push_back(value_of(token));
  }
  return buffer;
}

/// The definition, computed without the code under test except for Grid.
class Oracle {
 public:
  explicit Oracle(const Case& c, std::int64_t microbatch = 0)
      : case_(c),
        source_(c.source, c.source_instances),
        destination_(c.destination, c.destination_instances),
        boundary_(c.colocated
                      ? BuildColocatedBoundary(source_, destination_, c.tokens, c.num_ranks)
                      : BuildNonColocatedBoundary(source_, destination_, c.tokens, c.num_ranks)) {
    boundary_.ranks = std::vector(boundary_.In(static_cast<std::int32_t>(microbatch)));
    const std::int64_t size = c.tokens.samples_per_microbatch;
    const std::int64_t of_shard = size * c.tokens.num_microbatches;
    borders_.push_back(0);
    shards_.push_back(0);
    for (std::int64_t shard = 0; shard < c.destination.dp; ++shard) {
      const std::int64_t first = shard * of_shard + (c.colocated ? 0 : microbatch * size);
      for (std::int64_t sample = first; sample < first + (c.colocated ? of_shard : size);
           ++sample) {
        AddSample(sample);
      }
      shards_.push_back(borders_.back());
    }
  }

  void CheckAll() {
    ASSERT_EQ(boundary_.ranks.size(), static_cast<std::size_t>(case_.num_ranks));
    std::int64_t step = 0;
    for (std::int64_t sample = 0; sample < NumSamples(case_); ++sample) step += TokensOf(sample);
    ASSERT_EQ(boundary_.tokens_forward, step);
    CheckDealing();
    CheckNeeds();
    if (!::testing::Test::HasFatalFailure()) {
      ASSERT_EQ(Failure(boundary_), "");
    }
  }

  /// Runs both directions on `boundary`; what is wrong with the results, "" if nothing.
  std::string Failure(const Boundary& boundary) const {
    std::vector<TokenBuffer> activations(boundary.ranks.size());
    std::vector<TokenBuffer> gradients(boundary.ranks.size());
    for (std::size_t index = 0; index < boundary.ranks.size(); ++index) {
      const RankBoundary& entry = boundary_.ranks[index];
      activations[index] = Fill(entry.held_forward, Activation);
      const int cp =
          destination_.contains(Rank(index)) ? destination_.Coordinate(Rank(index), Axis::kCp) : 0;
      gradients[index] =
          Fill(entry.held_backward, [cp](std::int64_t token) { return Contribution(token, cp); });
    }
    const auto forward = RunBoundary(boundary, BoundaryDirection::kForward, activations);
    const auto backward = RunBoundary(boundary, BoundaryDirection::kBackward, gradients);
    if (forward.failure || backward.failure) {
      return forward.failure ? "forward: " + *forward.failure : "backward: " + *backward.failure;
    }
    const int cp_degree = case_.destination.cp;
    for (std::size_t index = 0; index < boundary.ranks.size(); ++index) {
      const RankBoundary& entry = boundary_.ranks[index];
      if (!entry.needed_forward.empty() &&
          forward.buffers[index].values != Fill(entry.needed_forward, Activation).values) {
        return fmt::format("rank {} ends forward with other tokens than it needs", index);
      }
      const auto gradient = [cp_degree](std::int64_t token) { return Gradient(token, cp_degree); };
      if (!entry.needed_backward.empty() &&
          backward.buffers[index].values != Fill(entry.needed_backward, gradient).values) {
        return fmt::format("rank {} ends backward with other gradients than it needs", index);
      }
    }
    return "";
  }

  const Boundary& boundary() const { return boundary_; }

 private:
  std::int64_t TokensOf(std::int64_t sample) const {
    const BoundaryTokens& tokens = case_.tokens;
    if (tokens.spans_of_sample.empty()) return tokens.tokens_per_sample;
    return tokens.span_tokens * tokens.spans_of_sample[static_cast<std::size_t>(sample)];
  }

  void AddSample(std::int64_t sample) {
    const std::int64_t begin = borders_.back();
    const std::int64_t tokens = TokensOf(sample);
    for (std::int64_t inside = 0; inside < tokens;) {
      inside = std::min(inside + case_.tokens.span_tokens, tokens);
      borders_.push_back(begin + inside);
    }
  }

  /// The shard that has a token.
  std::int64_t ShardOf(std::int64_t token) const {
    return std::upper_bound(shards_.begin(), shards_.end(), token) - shards_.begin() - 1;
  }

  /// Spans of lanes, in order, differ by one at most: all of them, or, where samples differ and the
  /// numbers of lanes and shards divide, within a shard. Lanes of several shards have them whole.
  void CheckEvenness(const std::vector<std::int64_t>& spans) {
    const int lanes = case_.source.dp;
    const int shards = case_.destination.dp;
    const bool uneven = !case_.tokens.spans_of_sample.empty();
    if (uneven && shards % lanes == 0 && shards > lanes) return;
    const int at_once = uneven && lanes % shards == 0 ? lanes / shards : lanes;
    for (auto begin = spans.begin(); begin != spans.end(); begin += at_once) {
      const auto [least, most] = std::minmax_element(begin, begin + at_once);
      ASSERT_LE(*most - *least, 1);
    }
  }

  /// Lanes cut the tokens at span borders, evenly, in the order of the shards that own them; inside
  /// a lane tp ranks have copies and cp ranks slices.
  void CheckDealing() {
    const std::vector<std::vector<Rank>> boundary_ranks =
        source_.StageView(source_.size(Axis::kPp) - 1).Groups(kTp | kCp);
    std::vector<int> lanes;
    std::vector<int> lanes_owned(static_cast<std::size_t>(case_.destination.dp), 0);
    const auto owner = [&](int lane) {
      const auto index = static_cast<std::size_t>(lane);
      return destination_.IndexIn(source_.Groups(kDp.Others())[index].front(), kDp);
    };
    for (int lane = 0; lane < case_.source.dp; ++lane) {
      lanes.push_back(lane);
      if (case_.colocated) {
        ++lanes_owned[static_cast<std::size_t>(owner(lane))];
      }
    }
    if (case_.colocated) {
      std::stable_sort(lanes.begin(), lanes.end(),
                       [&](int a, int b) { return owner(a) < owner(b); });
    }
    const bool fair = case_.colocated &&
                      std::count(lanes_owned.begin(), lanes_owned.end(), lanes_owned.front()) ==
                          static_cast<std::ptrdiff_t>(lanes_owned.size());
    std::int64_t position = 0;
    std::vector<std::int64_t> spans;
    for (const int lane : lanes) {
      std::int64_t next = position;
      for (const Rank rank : boundary_ranks[static_cast<std::size_t>(lane)]) {
        const Interval held = boundary_.ranks[rank.index()].held_forward;
        ASSERT_EQ(held, boundary_.ranks[rank.index()].needed_backward);
        if (source_.Coordinate(rank, Axis::kTp) == 0) {
          ASSERT_EQ(held.begin, next);
          next = held.end;
        }
        ASSERT_EQ(held, boundary_.ranks[source_.Group(rank, kTp).front().index()].held_forward);
      }
      const auto from = std::find(borders_.begin(), borders_.end(), position);
      const auto to = std::find(borders_.begin(), borders_.end(), next);
      ASSERT_TRUE(from != borders_.end() && to != borders_.end()) << "a span is cut at " << next;
      spans.push_back(to - from);
      if (fair && next > position) {
        ASSERT_EQ(ShardOf(position), owner(lane));
        ASSERT_EQ(ShardOf(next - 1), owner(lane));
      }
      position = next;
    }
    ASSERT_EQ(position, shards_.back());
    CheckEvenness(spans);
  }

  /// Ranks of the destination's first stage need, and have gradients of, their shard; others
  /// nothing.
  void CheckNeeds() {
    for (std::size_t index = 0; index < boundary_.ranks.size(); ++index) {
      const Rank rank(index);
      const RankBoundary& entry = boundary_.ranks[index];
      Interval shard;
      if (destination_.contains(rank) && destination_.Coordinate(rank, Axis::kPp) == 0) {
        const auto dp = static_cast<std::size_t>(destination_.IndexIn(rank, kDp));
        shard = {shards_[dp], shards_[dp + 1]};
      }
      ASSERT_EQ(entry.needed_forward, shard);
      ASSERT_EQ(entry.held_backward, shard);
      const bool holds = source_.contains(rank) &&
                         source_.Coordinate(rank, Axis::kPp) == source_.size(Axis::kPp) - 1;
      ASSERT_TRUE(holds || entry.held_forward.empty());
      for (const std::vector<Rank>& group : entry.groups) {
        ASSERT_GT(group.size(), 1U) << "a communicator of one rank";
      }
    }
  }

  const Case& case_;
  Grid source_;
  Grid destination_;
  std::vector<std::int64_t> borders_;  // of spans
  std::vector<std::int64_t> shards_;   // borders of shards
  Boundary boundary_;
};

/// All layouts of exactly `num_ranks` ranks with both orders.
std::vector<Layout> LayoutsOf(int num_ranks, int first_rank) {
  std::vector<Layout> layouts;
  for (int tp = 1; tp <= num_ranks; ++tp) {
    for (int cp = 1; tp * cp <= num_ranks; ++cp) {
      for (int pp = 1; tp * cp * pp <= num_ranks; ++pp) {
        if (num_ranks % (tp * cp * pp) != 0) {
          continue;
        }
        for (const AxisOrder order : {AxisOrder::kTpCpDpPp, AxisOrder::kTpCpPpDp}) {
          layouts.push_back({.tp = tp,
                             .cp = cp,
                             .pp = pp,
                             .dp = num_ranks / (tp * cp * pp),
                             .order = order,
                             .first_rank = first_rank});
        }
      }
    }
  }
  return layouts;
}

BoundaryTokens RandomTokens(base::RandomStream& random) {
  BoundaryTokens tokens;
  tokens.tokens_per_sample = random.UniformInt(1, 12);
  tokens.span_tokens = random.UniformInt(1, tokens.tokens_per_sample);
  tokens.samples_per_microbatch = random.UniformInt(1, 3);
  tokens.num_microbatches = random.UniformInt(1, 3);
  tokens.width = 1;
  return tokens;
}

int RandomInstances(const Layout& layout, base::RandomStream& random) {
  return layout.dp % 2 == 0 && random.Chance(0.5) ? 2 : 1;
}

/// Gives every sample a number of spans of its own in one case of three: up to 4, or mostly none.
void MakeUneven(Case& c, base::RandomStream& random) {
  if (!random.Chance(0.33)) return;
  const double text_only = random.Chance(0.5) ? 0.7 : 0.1;
  for (std::int64_t sample = 0; sample < NumSamples(c); ++sample) {
    const bool has_spans = !random.Chance(text_only);
    c.tokens.spans_of_sample.push_back(
        has_spans ? static_cast<std::int32_t>(random.UniformInt(0, 4)) : 0);
  }
}

void CheckCase(const Case& c) {
  SCOPED_TRACE(ToText(c));
  for (std::int64_t microbatch = 0; microbatch < (c.colocated ? 1 : c.tokens.num_microbatches);
       ++microbatch) {
    Oracle(c, microbatch).CheckAll();
    if (::testing::Test::HasFatalFailure()) return;
  }
}

/// Every pair of layouts of `num_ranks` ranks, each with tokens of its own.
void CheckColocatedPairs(int num_ranks) {
  base::RandomStream random(3, fmt::format("colocated {}", num_ranks));
  const std::vector<Layout> layouts = LayoutsOf(num_ranks, 0);
  std::array<int, 5> seen{};
  for (std::size_t pair = 0; pair < layouts.size() * layouts.size(); ++pair) {
    Case c;
    c.source = layouts[pair / layouts.size()];
    c.destination = layouts[pair % layouts.size()];
    c.source_instances = RandomInstances(c.source, random);
    c.destination_instances = RandomInstances(c.destination, random);
    c.num_ranks = num_ranks;
    c.tokens = RandomTokens(random);
    MakeUneven(c, random);
    CheckCase(c);
    if (::testing::Test::HasFatalFailure()) {
      return;
    }
    ++seen[static_cast<std::size_t>(Oracle(c).boundary().boundary_case)];
  }
  for (const BoundaryCase kind : {BoundaryCase::kEqual, BoundaryCase::kFanIn, BoundaryCase::kFanOut,
                                  BoundaryCase::kIrregular}) {
    EXPECT_GT(seen[static_cast<std::size_t>(kind)], 0) << ToText(kind);
  }
}

// All 40 × 40 pairs; LLM pp 1, 2, 4 and 8, encoders with more lanes than spans, torn lanes.
TEST(BoundaryProperty, ColocatedOnEightRanksMovesEveryTokenOnce) { CheckColocatedPairs(8); }

// All 80 × 80 and 70 × 70 pairs.
TEST(BoundaryProperty, ColocatedOnTwelveRanksMovesEveryTokenOnce) { CheckColocatedPairs(12); }
TEST(BoundaryProperty, ColocatedOnSixteenRanksMovesEveryTokenOnce) { CheckColocatedPairs(16); }

TEST(BoundaryProperty, NonColocatedMovesEveryTokenOnce) {
  base::RandomStream random(3, "non-colocated");
  std::array<int, 5> seen{};
  for (int round = 0; round < 1500; ++round) {
    const int source_ranks = static_cast<int>(random.UniformInt(1, 12));
    const int destination_ranks = static_cast<int>(random.UniformInt(1, 12));
    const int gap = static_cast<int>(random.UniformInt(0, 2));
    const bool source_first = random.Chance(0.5);
    const std::vector<Layout> sources =
        LayoutsOf(source_ranks, source_first ? 0 : destination_ranks + gap);
    const std::vector<Layout> destinations =
        LayoutsOf(destination_ranks, source_first ? source_ranks + gap : 0);
    Case c;
    c.source = random.Pick(std::span<const Layout>(sources));
    c.destination = random.Pick(std::span<const Layout>(destinations));
    c.source_instances = RandomInstances(c.source, random);
    c.destination_instances = RandomInstances(c.destination, random);
    c.colocated = false;
    c.num_ranks = source_ranks + gap + destination_ranks;
    c.tokens = RandomTokens(random);
    MakeUneven(c, random);
    CheckCase(c);
    ASSERT_FALSE(::testing::Test::HasFatalFailure());
    ++seen[static_cast<std::size_t>(Oracle(c).boundary().boundary_case)];
  }
  for (const BoundaryCase kind : {BoundaryCase::kEqual, BoundaryCase::kFanIn, BoundaryCase::kFanOut,
                                  BoundaryCase::kIrregular}) {
    EXPECT_GT(seen[static_cast<std::size_t>(kind)], 0) << ToText(kind);
  }
}

/// Members of an all-gather whose first two slots have tokens and one of whose members needs any.
std::vector<Rank> GatherThatMatters(const Boundary& boundary) {
  for (const RankBoundary& entry : boundary.ranks) {
    for (const bool forward : {true, false}) {
      for (const BoundaryStep& step : forward ? entry.forward : entry.backward) {
        if (step.kind == BoundaryStep::Kind::kCollective &&
            step.collective == CollectiveKind::kAllGather && step.member_tokens[0] > 0 &&
            step.member_tokens[1] > 0 &&
            !(forward ? entry.needed_forward : entry.needed_backward).empty()) {
          return entry.groups[step.group];
        }
      }
    }
  }
  return {};
}

// The checks can fail: they notice two swapped slots in a communicator of an all-gather, although
// all members agree on the swap and all sizes stay right.
TEST(BoundaryProperty, SwappedSlotsAreNoticed) {
  base::RandomStream random(3, "swapped slots");
  const std::vector<Layout> layouts = LayoutsOf(8, 0);
  int swaps = 0;
  for (int round = 0; round < 400; ++round) {
    Case c;
    c.source = random.Pick(std::span<const Layout>(layouts));
    c.destination = random.Pick(std::span<const Layout>(layouts));
    c.num_ranks = 8;
    c.tokens = RandomTokens(random);
    const Oracle oracle(c);
    Boundary swapped = oracle.boundary();
    const std::vector<Rank> target = GatherThatMatters(oracle.boundary());
    if (target.empty()) {
      continue;
    }
    ++swaps;
    for (RankBoundary& entry : swapped.ranks) {
      for (std::size_t group = 0; group < entry.groups.size(); ++group) {
        if (entry.groups[group] == target) {
          std::swap(entry.groups[group][0], entry.groups[group][1]);
          for (auto* steps : {&entry.forward, &entry.backward}) {
            for (BoundaryStep& step : *steps) {
              const bool gathers =
                  step.kind == BoundaryStep::Kind::kCollective && step.group == group;
              if (gathers) std::swap(step.member_tokens[0], step.member_tokens[1]);
            }
          }
        }
      }
    }
    EXPECT_NE(oracle.Failure(swapped), "") << ToText(c);
  }
  EXPECT_GT(swaps, 50);
}

// Nor do they let pass a sum over cp that is left out: gradients of the other slices are missing.
TEST(BoundaryProperty, ASumLeftOutIsNoticed) {
  Case c;
  c.source = {.dp = 8};
  c.destination = {.tp = 2, .cp = 2, .dp = 2};
  c.num_ranks = 8;
  c.tokens = {.tokens_per_sample = 4,
              .span_tokens = 2,
              .samples_per_microbatch = 2,
              .num_microbatches = 1,
              .width = 1};
  const Oracle oracle(c);
  ASSERT_EQ(oracle.Failure(oracle.boundary()), "");
  Boundary broken = oracle.boundary();
  for (RankBoundary& entry : broken.ranks) {
    std::erase_if(entry.backward, [](const BoundaryStep& step) {
      return step.collective == CollectiveKind::kAllReduce;
    });
  }
  EXPECT_NE(oracle.Failure(broken), "");
}

}  // namespace
}  // namespace isthmus::plan
