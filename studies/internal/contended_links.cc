#include "studies/internal/contended_links.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include <fmt/format.h>

#include "topology/describe.h"

namespace isthmus::studies::internal {
namespace {

using LostByLink = std::map<std::uint32_t, sim::SummedPicoseconds>;

// What flows of one cause lost to others.
struct Lost {
  LostByLink to_other_jobs;
  LostByLink to_own_job;
  double own_mean_ps = 0;  // the largest mean by flow, of what this job's flows took on one link

  const LostByLink& that_counts() const {
    return to_other_jobs.empty() ? to_own_job : to_other_jobs;
  }
  // Whether a piece of that length is told of it.
  bool CountsFor(std::int64_t length_ps) const {
    constexpr double kMuch = 0.05;
    return !to_other_jobs.empty() || own_mean_ps >= kMuch * static_cast<double>(length_ps);
  }
};

// Worst of all, and how many links cost nearly as much.
struct Worst {
  std::uint32_t link = 0;
  int num_alike = 0;
};

Worst WorstOf(const LostByLink& lost) {
  constexpr double kNearly = 0.99;
  sim::SummedPicoseconds most = 0;
  Worst worst;
  for (const auto& [link, lost_ps] : lost) {
    if (lost_ps <= most) continue;
    most = lost_ps;
    worst.link = link;
  }
  for (const auto& [link, lost_ps] : lost)
    if (static_cast<double>(lost_ps) >= kNearly * static_cast<double>(most)) ++worst.num_alike;
  return worst;
}

}  // namespace

void NameContendedLinks(const plan::Program& program, const topology::Cluster& cluster,
                        const sim::Outcome& outcome, std::vector<reports::PathSegment>& path) {
  std::map<sim::LinkCause, Lost> lost;
  for (const sim::LinkLoss& loss : outcome.link_history->losses) {
    if (loss.victim.job != 0) continue;
    Lost& here = lost[loss.victim];
    if (loss.culprit.job != 0) {
      here.to_other_jobs[loss.link] += loss.lost_ps;
      continue;
    }
    here.to_own_job[loss.link] += loss.lost_ps;
    here.own_mean_ps = std::max(
        here.own_mean_ps, static_cast<double>(loss.lost_ps) / static_cast<double>(loss.num_flows));
  }
  std::map<sim::LinkCause, Worst> worst;
  for (const auto& [cause, losses] : lost) worst.emplace(cause, WorstOf(losses.that_counts()));
  for (reports::PathSegment& piece : path) {
    if (piece.link_kind.empty()) continue;
    const plan::Op& op = program.role(base::Rank(piece.rank)).ops[piece.op_index];
    const sim::LinkCause cause{0, op.purpose, op.module, op.kind, op.detail};
    const auto at = lost.find(cause);
    if (at == lost.end() || !at->second.CountsFor(piece.end_ps - piece.start_ps)) continue;
    const Worst& here = worst.at(cause);
    const topology::Link& link = outcome.links[here.link].link;
    piece.link_kind = topology::NameOf(link.kind);
    piece.link = here.num_alike > 1 ? std::string()
                                    : fmt::format("{} -> {}", topology::LabelOf(cluster, link.from),
                                                  topology::LabelOf(cluster, link.to));
  }
}

}  // namespace isthmus::studies::internal
