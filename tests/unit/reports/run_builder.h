#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reports/analysis.h"
#include "traces/trace.h"

namespace isthmus::reports {

/// Makes small traces by hand: roles with their ops, classes, and when everything ran.
///
/// Every role has the lanes 0 compute, 1 and 2 communicators, 3 p2p, 4 copies to the host.
struct RunBuilder {
  static constexpr std::uint16_t kComputeLane = 0;
  static constexpr std::uint16_t kCommLane = 1;
  static constexpr std::uint16_t kOtherCommLane = 2;
  static constexpr std::uint16_t kP2PLane = 3;
  static constexpr std::uint16_t kCopyLane = 4;

  RunBuilder() {
    header.num_ranks = 0;
    header.modules = {{.name = "vision"}, {.name = "llm"}};
  }

  /// A role and its only class. `groups` are communicators, indices into header.groups.
  std::uint32_t AddClass(const std::string& role_name, std::int32_t count = 1,
                         std::vector<std::uint32_t> groups = {},
                         std::vector<std::uint32_t> peers = {}) {
    const auto index = static_cast<std::uint32_t>(header.classes.size());
    traces::RoleRecord& role = header.roles.emplace_back();
    role.name = role_name;
    role.lanes = {{"compute", "compute"},
                  {"communicator", "a"},
                  {"communicator", "b"},
                  {"p2p", "p2p"},
                  {"copy_to_host", "copy"}};
    for (const std::uint32_t group : groups)
      role.groups.push_back("group " + std::to_string(group));
    traces::RankClass& ranks = header.classes.emplace_back();
    ranks.representative = header.num_ranks;
    ranks.count = count;
    ranks.role = index;
    ranks.groups = std::move(groups);
    ranks.peers = std::move(peers);
    header.num_ranks += count;
    return index;
  }

  /// Appends an op to the class's role and when it ran. Returns the op.
  std::uint32_t Add(std::uint32_t rank_class, traces::OpRecord record, std::int64_t issue,
                    std::int64_t start, std::int64_t end) {
    auto& ops = header.roles[header.classes[rank_class].role].ops;
    const auto op = static_cast<std::uint32_t>(ops.size());
    ops.push_back(std::move(record));
    events.push_back({rank_class, op, 0, issue, start, end});
    trailer.end_ps = std::max(trailer.end_ps, end);
    ++trailer.num_ops;
    return op;
  }

  std::uint32_t Compute(std::uint32_t rank_class, std::int64_t start, std::int64_t end,
                        std::vector<traces::Dependency> dependencies = {}) {
    return Add(rank_class,
               {.name = "forward",
                .kind = "compute",
                .module = 1,
                .lane = kComputeLane,
                .dependencies = std::move(dependencies)},
               start, start, end);
  }

  std::uint32_t Collective(std::uint32_t rank_class, std::uint32_t group, std::int64_t issue,
                           std::int64_t start, std::int64_t end,
                           std::vector<traces::Dependency> dependencies = {}) {
    return Add(rank_class,
               {.name = "reduce_scatter",
                .category = traces::Category::kDpComm,
                .kind = "collective",
                .module = 1,
                .lane = kCommLane,
                .group = group,
                .dependencies = std::move(dependencies)},
               issue, start, end);
  }

  /// A P2P op of one transfer, posted at `issue`.
  std::uint32_t Transfer(std::uint32_t rank_class, bool sends, std::uint32_t peer,
                         std::int64_t issue, std::int64_t start, std::int64_t end,
                         std::vector<traces::Dependency> dependencies = {}) {
    const std::uint32_t op = Add(rank_class,
                                 {.name = sends ? "send" : "recv",
                                  .category = traces::Category::kPipelineComm,
                                  .kind = "p2p",
                                  .module = 1,
                                  .lane = kP2PLane,
                                  .dependencies = std::move(dependencies),
                                  .transfers = {{.sends = sends, .peer = peer, .bytes = 1}}},
                                 issue, issue, issue);
    events.push_back({rank_class, op, 1, issue, start, end});
    trailer.end_ps = std::max(trailer.end_ps, end);
    return op;
  }

  traces::OpRecord& op(std::uint32_t rank_class, std::uint32_t index) {
    return header.roles[header.classes[rank_class].role].ops[index];
  }

  Figures Analyse(Analysis::Path path = Analysis::Path::kSums) const {
    Analysis analysis(path);
    analysis.OnHeader(header);
    analysis.OnEvents(events);
    analysis.OnTrailer(trailer);
    return analysis.figures();
  }

  traces::Header header;
  std::vector<traces::Event> events;
  traces::Trailer trailer;
};

/// Picoseconds a class spends on a use.
inline std::int64_t Use(const Figures& figures, std::size_t rank_class, TimeUse use) {
  return figures.classes[rank_class].use_ps[static_cast<std::size_t>(use)];
}

inline std::int64_t Exposed(const Figures& figures, std::size_t rank_class,
                            traces::Category category) {
  return figures.classes[rank_class].exposed_ps[static_cast<std::size_t>(category)];
}

/// The path's share of a category over all modules.
inline double PathShareOf(const Figures& figures, const std::string& category) {
  double sum = 0;
  for (const PathShare& share : figures.critical_path) {
    if (share.category == category) sum += share.share;
  }
  return sum;
}

}  // namespace isthmus::reports
