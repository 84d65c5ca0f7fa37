#include "studies/internal/contended_links.h"

#include <cstdint>
#include <map>
#include <string>

#include <fmt/format.h>

#include "topology/describe.h"

namespace isthmus::studies::internal {
namespace {

// What flows of one cause lost to other jobs, by link.
using LostByLink = std::map<std::uint32_t, sim::SummedPicoseconds>;

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
  std::map<sim::LinkCause, LostByLink> lost;
  for (const sim::LinkLoss& loss : outcome.link_history->losses) {
    if (loss.victim.job == 0 && loss.culprit.job != 0) lost[loss.victim][loss.link] += loss.lost_ps;
  }
  for (reports::PathSegment& piece : path) {
    if (piece.link_kind.empty()) continue;
    const plan::Op& op = program.role(base::Rank(piece.rank)).ops[piece.op_index];
    const auto at = lost.find({0, op.purpose, op.module, op.kind, op.detail});
    if (at == lost.end()) continue;
    const Worst worst = WorstOf(at->second);
    const topology::Link& link = outcome.links[worst.link].link;
    piece.link_kind = topology::NameOf(link.kind);
    piece.link = worst.num_alike > 1
                     ? std::string()
                     : fmt::format("{} -> {}", topology::LabelOf(cluster, link.from),
                                   topology::LabelOf(cluster, link.to));
  }
}

}  // namespace isthmus::studies::internal
