#include "plan/program/validate.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "plan/program/internal/communicators.h"
#include "plan/program/internal/rendezvous_run.h"
#include "plan/program/internal/role_check.h"

namespace isthmus::plan {
namespace {

void Append(std::vector<std::string>& to, std::vector<std::string> from) {
  for (std::string& text : from) to.push_back(std::move(text));
}

/// Messages from rank `from` to rank `to`, of one way, in the order of one side's list.
std::vector<Interval> Between(const std::vector<BoundaryMessage>& messages, base::Rank peer) {
  std::vector<Interval> intervals;
  for (const BoundaryMessage& message : messages) {
    if (message.peer == peer) intervals.push_back(message.tokens);
  }
  return intervals;
}

/// What boundaries send is what they receive, rank by rank and message by message.
void CheckMessages(std::size_t edge, const std::vector<RankBoundary>& ranks,
                   std::vector<std::string>& problems) {
  using List = std::vector<BoundaryMessage> RankBoundary::*;
  constexpr std::pair<List, List> kWays[] = {
      {&RankBoundary::sends_forward, &RankBoundary::receives_forward},
      {&RankBoundary::sends_backward, &RankBoundary::receives_backward}};
  const auto check = [&](std::size_t here, List ours, List theirs) {
    for (const BoundaryMessage& message : ranks[here].*ours) {
      const std::size_t there = message.peer.index();
      if (there < ranks.size() && Between(ranks[here].*ours, message.peer) ==
                                      Between(ranks[there].*theirs, base::Rank{here})) {
        continue;
      }
      problems.push_back(fmt::format("edge {}: ranks {} and {} list other messages of each other",
                                     edge, here, there));
    }
  };
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const auto& [sends, receives] : kWays) {
      check(rank, sends, receives);
      check(rank, receives, sends);
    }
  }
}

void CheckBoundaryMessages(const Program& program, std::vector<std::string>& problems) {
  for (std::size_t edge = 0; edge < program.boundaries.size(); ++edge) {
    const Boundary& boundary = program.boundaries[edge];
    CheckMessages(edge, boundary.ranks, problems);
    for (const auto& ranks : boundary.other_ranks) CheckMessages(edge, ranks, problems);
  }
}

/// A message of a rank and whether the rank sends it.
struct OwnMessage {
  const BoundaryMessage* message = nullptr;
  bool sends = false;
};

/// The message that a boundary peer stands for: see PeerRef::index. Null if there is none.
OwnMessage MessageOf(const RankBoundary& rank, std::size_t index) {
  const std::pair<const std::vector<BoundaryMessage>*, bool> lists[] = {
      {&rank.sends_forward, true},
      {&rank.receives_forward, false},
      {&rank.sends_backward, true},
      {&rank.receives_backward, false}};
  for (const auto& [messages, sends] : lists) {
    if (index < messages->size()) return {&(*messages)[index], sends};
    index -= messages->size();
  }
  return {};
}

/// What a rank's transfers move over boundaries is what its messages say: each of them once per
/// microbatch and step, gradients unless nobody needs them.
void CheckBoundaryBytes(const Program& program, base::Rank rank,
                        std::vector<std::string>& problems) {
  // With shapes ahead of the tensors there are two transfers for each message.
  if (program.schedule.protocol != MessageProtocol::kSingle) return;
  const Role& role = program.role(rank);
  std::vector<std::int64_t> times(role.peers.size(), 0);
  for (const Transfer& transfer : role.transfers) {
    const PeerRef& peer = role.peers[transfer.peer];
    if (peer.kind != PeerRef::Kind::kBoundary) continue;
    const Boundary& boundary = program.boundaries[peer.edge];
    const std::int32_t microbatch = role.storages[role.values[transfer.value].storage].microbatch;
    const auto [message, sends] = MessageOf(boundary.At(rank, microbatch), peer.index);
    const auto from = static_cast<std::size_t>(program.edges[peer.edge].from);
    const std::int64_t element =
        BytesOf(ActivationType(program.modules[from].module.settings)).value();
    const std::int64_t bytes = program.Size(rank, transfer.size).value();
    ++times[transfer.peer];
    const bool fits = message != nullptr && sends == transfer.sends &&
                      bytes == message->tokens.size() * boundary.width * element;
    if (fits) continue;
    problems.push_back(fmt::format("rank {}: edge {}: a transfer of {} bytes is not its message",
                                   rank.value(), peer.edge, bytes));
  }
  for (std::size_t index = 0; index < role.peers.size(); ++index) {
    const PeerRef& peer = role.peers[index];
    if (peer.kind != PeerRef::Kind::kBoundary) continue;
    const std::int64_t all = program.num_steps * program.num_microbatches;
    if (times[index] == all) continue;
    problems.push_back(fmt::format("rank {}: edge {}: message {} moves {} times, not {}",
                                   rank.value(), peer.edge, peer.index, times[index], all));
  }
}

/// Boundary messages that a rank with a part in a non-colocated edge never moves forward.
void CheckBoundaryPeers(const Program& program, base::Rank rank,
                        std::vector<std::string>& problems) {
  const Role& role = program.role(rank);
  for (std::size_t edge = 0; edge < program.boundaries.size(); ++edge) {
    const Boundary& boundary = program.boundaries[edge];
    if (boundary.ranks.empty()) continue;
    const RankBoundary& here = boundary.ranks[rank.index()];
    const std::size_t messages = here.sends_forward.size() + here.receives_forward.size();
    for (std::size_t index = 0; index < messages; ++index) {
      const bool moves =
          std::any_of(role.peers.begin(), role.peers.end(), [&](const PeerRef& peer) {
            return peer.kind == PeerRef::Kind::kBoundary && peer.edge == edge &&
                   peer.index == index;
          });
      if (!moves) {
        problems.push_back(
            fmt::format("rank {}: edge {}: message {} never moves", rank.value(), edge, index));
      }
    }
  }
}

/// One run that is stricter than any executor proves most programs; where it blocks, the looser one
/// tells a deadlock from communicators that ranks issue in different orders.
void CheckRendezvous(const Program& program, std::vector<std::string>& problems) {
  const internal::Communicators communicators(program, problems);
  if (!problems.empty()) return;
  std::vector<std::string> strict =
      internal::RendezvousRun(program, communicators, internal::IssueOrder::kSerial).Run();
  if (strict.empty()) return;
  problems = internal::RendezvousRun(program, communicators, internal::IssueOrder::kLanes).Run();
  if (!problems.empty()) return;
  problems.emplace_back("ranks issue the communicators they share in different orders");
  Append(problems, std::move(strict));
}

}  // namespace

Validation Validate(const Program& program) {
  Validation validation;
  for (const Role& role : program.roles) {
    Append(validation.problems, internal::CheckReferences(program, role));
  }
  if (!validation.ok()) return validation;
  for (const Role& role : program.roles) {
    Append(validation.problems, internal::CheckValues(program, role));
    Append(validation.problems, internal::CheckForwardBeforeBackward(program, role));
    Append(validation.problems, internal::CheckInFlight(program, role));
  }
  CheckBoundaryMessages(program, validation.problems);
  for (int index = 0; index < program.num_ranks; ++index) {
    CheckBoundaryBytes(program, base::Rank{index}, validation.problems);
    CheckBoundaryPeers(program, base::Rank{index}, validation.problems);
  }
  if (validation.ok()) CheckRendezvous(program, validation.problems);
  return validation;
}

}  // namespace isthmus::plan
