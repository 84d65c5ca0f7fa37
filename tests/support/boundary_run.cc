#include "tests/support/boundary_run.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace isthmus::tests {
namespace {

using base::Rank;
using plan::BoundaryMessage;
using plan::BoundaryStep;
using plan::CollectiveKind;
using plan::Interval;
using plan::RankBoundary;

/// A failure of the plan, thrown to the outside of the run.
struct Failure {
  std::string text;
};

void Require(bool condition, std::string_view text) {
  if (!condition) {
    throw Failure{std::string(text)};
  }
}

std::int64_t SizeOf(const TokenBuffer& buffer) {
  return static_cast<std::int64_t>(buffer.values.size());
}

std::vector<std::uint64_t> Cut(const TokenBuffer& buffer, const Interval& tokens, Rank rank) {
  if (tokens.empty()) {
    return {};
  }
  Require(buffer.begin <= tokens.begin && tokens.end <= buffer.begin + SizeOf(buffer),
          fmt::format("rank {} does not hold [{}, {})", rank.value(), tokens.begin, tokens.end));
  const auto first = buffer.values.begin() + (tokens.begin - buffer.begin);
  return {first, first + tokens.size()};
}

class Run {
 public:
  Run(const plan::Boundary& boundary, BoundaryDirection direction, std::vector<TokenBuffer> buffers)
      : boundary_(boundary),
        forward_(direction == BoundaryDirection::kForward),
        buffers_(std::move(buffers)),
        next_(boundary.ranks.size(), 0) {}

  std::vector<TokenBuffer> Finish() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t index = 0; index < next_.size(); ++index) {
        while (!Done(index) && TryStep(Rank(index))) {
          moved = true;
        }
      }
    }
    for (std::size_t index = 0; index < next_.size(); ++index) {
      Require(Done(index), fmt::format("rank {} waits for ever in step {}", index, next_[index]));
    }
    Require(in_flight_.empty(), "a message was never received");
    return std::move(buffers_);
  }

 private:
  const RankBoundary& Entry(Rank rank) const { return boundary_.ranks[rank.index()]; }
  const std::vector<BoundaryStep>& Steps(std::size_t index) const {
    return forward_ ? boundary_.ranks[index].forward : boundary_.ranks[index].backward;
  }
  bool Done(std::size_t index) const { return next_[index] == Steps(index).size(); }
  TokenBuffer& Buffer(Rank rank) { return buffers_[rank.index()]; }

  bool TryStep(Rank rank) {
    const BoundaryStep& step = Steps(rank.index())[next_[rank.index()]];
    switch (step.kind) {
      case BoundaryStep::Kind::kSelect:
        Select(rank, step);
        ++next_[rank.index()];
        return true;
      case BoundaryStep::Kind::kTransfers:
        return TryTransfers(rank);
      case BoundaryStep::Kind::kCollective:
        return TryCollective(rank, step);
    }
    return false;
  }

  void Select(Rank rank, const BoundaryStep& step) {
    const Interval& needed = forward_ ? Entry(rank).needed_forward : Entry(rank).needed_backward;
    Require(step.tokens == needed.size(), "a select of the wrong size");
    Buffer(rank) = {needed.begin, Cut(Buffer(rank), needed, rank)};
  }

  bool TryTransfers(Rank rank) {
    const RankBoundary& entry = Entry(rank);
    const auto& sends = forward_ ? entry.sends_forward : entry.sends_backward;
    const auto& receives = forward_ ? entry.receives_forward : entry.receives_backward;
    if (posted_.insert(rank).second) {
      for (const BoundaryMessage& message : sends) {
        const bool fresh =
            in_flight_
                .insert({{rank, message.peer},
                         {message.tokens.begin, Cut(Buffer(rank), message.tokens, rank)}})
                .second;
        Require(fresh, "two messages between one pair of leaders");
      }
    }
    TokenBuffer received;
    for (const BoundaryMessage& message : receives) {
      const auto found = in_flight_.find({message.peer, rank});
      if (found == in_flight_.end()) {
        return false;
      }
      Require(found->second.begin == message.tokens.begin &&
                  SizeOf(found->second) == message.tokens.size(),
              "sender and receiver disagree on a message");
    }
    for (const BoundaryMessage& message : receives) {
      const auto found = in_flight_.find({message.peer, rank});
      received.begin = received.values.empty() ? found->second.begin : received.begin;
      received.values.insert(received.values.end(), found->second.values.begin(),
                             found->second.values.end());
      in_flight_.erase(found);
    }
    if (!receives.empty()) {
      Buffer(rank) = std::move(received);
    }
    ++next_[rank.index()];
    return true;
  }

  /// Runs the collective if all members have come to it.
  bool TryCollective(Rank rank, const BoundaryStep& step) {
    const std::vector<Rank>& members = Entry(rank).groups[step.group];
    const std::vector<std::int64_t>& tokens = step.member_tokens;
    Require(std::find(members.begin(), members.end(), rank) != members.end(),
            fmt::format("rank {} is not in its own group", rank.value()));
    for (const Rank member : members) {
      if (Done(member.index())) {
        return false;
      }
      const BoundaryStep& other = Steps(member.index())[next_[member.index()]];
      if (other.kind != BoundaryStep::Kind::kCollective ||
          Entry(member).groups[other.group] != members) {
        return false;
      }
      Require(other.collective == step.collective && other.tokens == step.tokens &&
                  other.member_tokens == tokens,
              "members disagree on a collective");
    }
    Execute(step, members, tokens);
    for (const Rank member : members) {
      ++next_[member.index()];
    }
    return true;
  }

  void Execute(const BoundaryStep& step, const std::vector<Rank>& members,
               const std::vector<std::int64_t>& tokens) {
    switch (step.collective) {
      case CollectiveKind::kAllGather:
        return AllGather(step, members, tokens);
      case CollectiveKind::kAllToAllV:
        return AllToAll(members, tokens);
      case CollectiveKind::kBroadcast:
        Require(SizeOf(Buffer(members.front())) == step.tokens, "the root lacks the broadcast");
        for (const Rank member : members) {
          Buffer(member) = Buffer(members.front());
        }
        return;
      case CollectiveKind::kReduce:
      case CollectiveKind::kAllReduce:
        return Sum(step, members);
      default:
        throw Failure{"a boundary has no such collective"};
    }
  }

  void AllGather(const BoundaryStep& step, const std::vector<Rank>& members,
                 const std::vector<std::int64_t>& tokens) {
    TokenBuffer whole{Buffer(members.front()).begin, {}};
    for (std::size_t slot = 0; slot < members.size(); ++slot) {
      const TokenBuffer& part = Buffer(members[slot]);
      Require(SizeOf(part) == tokens[slot], "a slot of an all-gather has the wrong size");
      whole.values.insert(whole.values.end(), part.values.begin(), part.values.end());
    }
    Require(SizeOf(whole) == step.tokens, "an all-gather has the wrong size");
    for (const Rank member : members) {
      Buffer(member) = whole;
    }
  }

  void Sum(const BoundaryStep& step, const std::vector<Rank>& members) {
    TokenBuffer sum = Buffer(members.front());
    Require(SizeOf(sum) == step.tokens, "a sum of the wrong size");
    for (std::size_t slot = 1; slot < members.size(); ++slot) {
      const TokenBuffer& part = Buffer(members[slot]);
      Require(SizeOf(part) == step.tokens, "a part of a sum has the wrong size");
      for (std::size_t token = 0; token < sum.values.size(); ++token) {
        sum.values[token] += part.values[token];
      }
    }
    const bool everywhere = step.collective == CollectiveKind::kAllReduce;
    for (const Rank member : members) {
      Buffer(member) = everywhere || member == members.front() ? sum : TokenBuffer{};
    }
  }

  void AllToAll(const std::vector<Rank>& members, const std::vector<std::int64_t>& tokens) {
    std::vector<TokenBuffer> results(members.size());
    // By receiver, then in the order of the intervals.
    std::map<std::size_t, std::map<std::int64_t, std::vector<std::uint64_t>>> parts;
    for (std::size_t from = 0; from < members.size(); ++from) {
      const RankBoundary& entry = Entry(members[from]);
      const auto& sends = forward_ ? entry.all_to_all_forward : entry.all_to_all_backward;
      Require(sends.size() == members.size(), "an all-to-all-v table of the wrong length");
      std::int64_t sent = 0;
      for (std::size_t to = 0; to < members.size(); ++to) {
        sent += sends[to].size();
        if (!sends[to].empty()) {
          const auto part = Cut(Buffer(members[from]), sends[to], members[from]);
          Require(parts[to].insert({sends[to].begin, part}).second, "tokens were sent twice");
        }
      }
      Require(sent == tokens[from], "an all-to-all-v member sends something else");
    }
    for (std::size_t to = 0; to < members.size(); ++to) {
      TokenBuffer& result = results[to];
      for (const auto& [begin, part] : parts[to]) {
        result.begin = result.values.empty() ? begin : result.begin;
        Require(begin == result.begin + SizeOf(result), "a gap in an all-to-all-v");
        result.values.insert(result.values.end(), part.begin(), part.end());
      }
      Buffer(members[to]) = result;
    }
  }

  const plan::Boundary& boundary_;
  bool forward_;
  std::vector<TokenBuffer> buffers_;
  std::vector<std::size_t> next_;                           // by rank: step to run next
  std::set<Rank> posted_;                                   // ranks that have posted their sends
  std::map<std::pair<Rank, Rank>, TokenBuffer> in_flight_;  // by sender and receiver
};

}  // namespace

BoundaryOutcome RunBoundary(const plan::Boundary& boundary, BoundaryDirection direction,
                            std::vector<TokenBuffer> buffers) {
  BoundaryOutcome outcome;
  try {
    outcome.buffers = Run(boundary, direction, std::move(buffers)).Finish();
  } catch (const Failure& failure) {
    outcome.failure = failure.text;
  }
  return outcome;
}

}  // namespace isthmus::tests
