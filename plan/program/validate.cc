#include "plan/program/validate.h"

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
void CheckBoundaryMessages(const Program& program, std::vector<std::string>& problems) {
  using List = std::vector<BoundaryMessage> RankBoundary::*;
  constexpr std::pair<List, List> kWays[] = {
      {&RankBoundary::sends_forward, &RankBoundary::receives_forward},
      {&RankBoundary::sends_backward, &RankBoundary::receives_backward}};
  for (std::size_t edge = 0; edge < program.boundaries.size(); ++edge) {
    const std::vector<RankBoundary>& ranks = program.boundaries[edge].ranks;
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
  if (validation.ok()) CheckRendezvous(program, validation.problems);
  return validation;
}

}  // namespace isthmus::plan
