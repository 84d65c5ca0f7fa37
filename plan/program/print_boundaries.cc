#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/program/internal/words.h"
#include "plan/program/print.h"

namespace isthmus::plan {
namespace {

std::string Tokens(std::int64_t tokens) {
  return tokens == 0 ? "nothing" : base::FormatCount(tokens) + " tokens";
}

/// "send 1,152 to 1 rank", "" when there are none.
std::string MessagesText(const std::vector<BoundaryMessage>& messages, const char* verb,
                         const char* way) {
  if (messages.empty()) return "";
  std::int64_t tokens = 0;
  for (const BoundaryMessage& message : messages) tokens += message.tokens.size();
  return fmt::format("{} {} {} {} rank{}", verb, base::FormatCount(tokens), way, messages.size(),
                     messages.size() == 1 ? "" : "s");
}

/// What a rank does one way, in order: "gather 4,608 over 4, select 1,152".
std::string StepsText(const RankBoundary& rank, const std::vector<BoundaryStep>& steps,
                      const std::string& messages) {
  std::string text;
  for (const BoundaryStep& step : steps) {
    std::string part;
    switch (step.kind) {
      case BoundaryStep::Kind::kSelect:
        part = "select " + base::FormatCount(step.tokens);
        break;
      case BoundaryStep::Kind::kTransfers:
        part = messages;
        break;
      case BoundaryStep::Kind::kCollective:
        part = fmt::format("{} {} over {}", ToText(step.collective), base::FormatCount(step.tokens),
                           rank.groups[step.group].size());
        break;
    }
    if (!part.empty()) text += (text.empty() ? "" : ", then ") + part;
  }
  return text.empty() ? "nothing to do" : text;
}

std::string WayText(const RankBoundary& rank, bool forward) {
  const std::string sends =
      MessagesText(forward ? rank.sends_forward : rank.sends_backward, "send", "to");
  const std::string receives =
      MessagesText(forward ? rank.receives_forward : rank.receives_backward, "receive", "from");
  const std::string messages =
      sends + (sends.empty() || receives.empty() ? "" : " and ") + receives;
  return StepsText(rank, forward ? rank.forward : rank.backward, messages);
}

/// "3 -> 8 (0-1,151), 7 -> 12 ...": the leaders' messages of one way.
std::string RoutesText(const std::vector<RankBoundary>& ranks, bool forward) {
  constexpr std::size_t kMost = 4;
  std::string text;
  std::size_t count = 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const BoundaryMessage& message :
         forward ? ranks[rank].sends_forward : ranks[rank].sends_backward) {
      if (message.tokens.empty() || ++count > kMost) continue;
      text += fmt::format("{}{} -> {} tokens {}-{}", text.empty() ? "" : ", ", rank,
                          message.peer.value(), message.tokens.begin, message.tokens.end - 1);
    }
  }
  return count > kMost ? text + fmt::format(" and {} more", count - kMost) : text;
}

/// What all ranks do, in the window or in one kind of microbatch.
std::string TableText(const std::vector<RankBoundary>& ranks) {
  // Ranks that hold, need and do the same are one kind, in the order of their first rank.
  std::map<std::vector<std::string>, std::vector<base::Rank>> kinds;
  std::vector<std::vector<std::string>> order;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankBoundary& here = ranks[rank];
    std::vector<std::string> kind{"forward",
                                  Tokens(here.held_forward.size()),
                                  Tokens(here.needed_forward.size()),
                                  WayText(here, true),
                                  "backward",
                                  Tokens(here.held_backward.size()),
                                  Tokens(here.needed_backward.size()),
                                  WayText(here, false)};
    const auto [at, is_new] = kinds.try_emplace(kind);
    if (is_new) order.push_back(std::move(kind));
    at->second.emplace_back(rank);
  }
  std::vector<std::vector<std::string>> rows{{"ranks", "way", "holds", "needs", "does"}};
  constexpr std::size_t kMostKinds = 12;
  for (std::size_t at = 0; at < order.size() && at < kMostKinds; ++at) {
    const std::vector<std::string>& kind = order[at];
    rows.push_back({internal::RankList(kinds[kind]), kind[0], kind[1], kind[2], kind[3]});
    rows.push_back({fmt::format("({})", kinds[kind].size()), kind[4], kind[5], kind[6], kind[7]});
  }
  std::string text = internal::Columns(rows, "  ");
  if (order.size() > kMostKinds)
    text += fmt::format("  ... {} more kinds of ranks\n", order.size() - kMostKinds);
  for (const bool forward : {true, false}) {
    const std::string routes = RoutesText(ranks, forward);
    if (!routes.empty())
      text += fmt::format("  {}: {}\n", forward ? "forward" : "backward", routes);
  }
  return text;
}

/// The tables of microbatches that differ, the first few.
std::string TablesText(const Boundary& boundary) {
  constexpr std::size_t kMostTables = 4;
  const std::vector<std::uint32_t>& tables = boundary.table_of_microbatch;
  std::string text;
  for (std::uint32_t table = 0; table <= boundary.other_ranks.size() && table < kMostTables;
       ++table) {
    const auto first = std::find(tables.begin(), tables.end(), table);
    text += fmt::format("  microbatch {} ({} of {} are like it)\n", first - tables.begin(),
                        std::count(tables.begin(), tables.end(), table), tables.size());
    text += TableText(boundary.In(static_cast<std::int32_t>(first - tables.begin())));
  }
  const std::size_t left = boundary.other_ranks.size() + 1;
  if (left > kMostTables)
    text += fmt::format("  ... {} more kinds of microbatches\n", left - kMostTables);
  return text;
}

std::string EdgeText(const Program& program, std::size_t edge) {
  const Boundary& boundary = program.boundaries[edge];
  if (boundary.ranks.empty()) {
    return fmt::format("boundary {}: in the LLM's first stage, nothing moves ({} tokens a step)\n",
                       internal::EdgeName(program, edge),
                       base::FormatCount(boundary.tokens_forward));
  }
  const std::string factor = boundary.factor > 1 ? fmt::format(" {} to 1", boundary.factor) : "";
  const std::string title =
      fmt::format("boundary {}: {}{}, {} tokens a step of {} elements; per {}\n",
                  internal::EdgeName(program, edge), ToText(boundary.boundary_case), factor,
                  base::FormatCount(boundary.tokens_forward), base::FormatCount(boundary.width),
                  boundary.colocated ? "window" : "microbatch");
  return title +
         (boundary.microbatches_differ() ? TablesText(boundary) : TableText(boundary.ranks));
}

}  // namespace

std::string PrintBoundaries(const Program& program) {
  std::string text;
  for (std::size_t edge = 0; edge < program.edges.size(); ++edge) {
    text += (edge == 0 ? "" : "\n") + EdgeText(program, edge);
  }
  return text;
}

}  // namespace isthmus::plan
