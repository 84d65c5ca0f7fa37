#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/recorder.h"

namespace isthmus::traces {

/// Two ranks with a role each, made op by op. Lanes: compute, communicator, p2p; the one group has
/// both ranks.
struct MeasuredRun {
  MeasuredRun() {
    trace.header.kind = TraceKind::kMeasured;
    trace.header.num_ranks = 2;
    trace.header.modules = {{.name = "llm"}};
    trace.header.groups = {{0, 1}};
    for (std::int32_t rank = 0; rank < 2; ++rank) {
      RoleRecord& role = trace.header.roles.emplace_back();
      role.lanes = {{"compute", "compute"}, {"communicator", "dp"}, {"p2p", "p2p"}};
      role.groups = {"dp"};
      RankClass& rank_class = trace.header.classes.emplace_back();
      rank_class.representative = rank;
      rank_class.members = {rank};
      rank_class.role = static_cast<std::uint32_t>(rank);
      rank_class.groups = {0};
      rank_class.peers = {rank == 0 ? 1U : 0U};
    }
  }

  std::uint32_t Add(std::uint32_t rank, OpRecord record, std::int64_t issue, std::int64_t start,
                    std::int64_t end) {
    std::vector<OpRecord>& ops = trace.header.roles[rank].ops;
    const auto op = static_cast<std::uint32_t>(ops.size());
    ops.push_back(std::move(record));
    trace.events.push_back({rank, op, 0, issue, start, end});
    return op;
  }
  std::uint32_t Compute(std::uint32_t rank, std::int64_t start, std::int64_t end,
                        std::vector<Dependency> dependencies = {}) {
    return Add(rank,
               {.name = "forward",
                .kind = "compute",
                .action = "forward",
                .dependencies = std::move(dependencies)},
               start, start, end);
  }
  std::uint32_t Collective(std::uint32_t rank, const std::string& action, std::int64_t issue,
                           std::int64_t start, std::int64_t end) {
    return Add(rank,
               {.name = action,
                .category = Category::kDpComm,
                .kind = "collective",
                .action = action,
                .lane = 1,
                .group = 1,
                .bytes = 8},
               issue, start, end);
  }
  /// A P2P op of one transfer, posted at `issue`.
  std::uint32_t Transfer(std::uint32_t rank, bool sends, std::int64_t issue, std::int64_t start,
                         std::int64_t end) {
    const std::uint32_t op = Add(rank,
                                 {.name = sends ? "send" : "receive",
                                  .kind = "p2p",
                                  .action = "exchange",
                                  .lane = 2,
                                  .transfers = {{.sends = sends, .peer = 0, .bytes = 8}}},
                                 issue, issue, issue);
    trace.events.push_back({rank, op, 1, issue, start, end});
    return op;
  }
  Event& Find(std::uint32_t rank, std::uint32_t op, std::uint32_t inner = 0) {
    for (Event& event : trace.events) {
      if (event.rank_class == rank && event.op == op && event.inner == inner) return event;
    }
    return trace.events.front();
  }

  Trace trace;
};

}  // namespace isthmus::traces
