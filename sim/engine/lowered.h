#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "plan/program/program.h"
#include "sim/engine/op_graph.h"
#include "traces/trace.h"

/// A program made ready for the engine: dependencies as counts, costs as integer picoseconds, ranks
/// that do the same at equivalent places as one class.
namespace isthmus::sim {

/// One serial step of an expanded block: the kernels' and the collective's own time, both from the
/// segment's start; the segment lasts `duration_ps`.
struct PieceCost {
  const char* name = "";
  traces::Category category = traces::Category::kCompute;  // of the collective, if there is one
  std::int64_t duration_ps = 0;
  std::int64_t compute_ps = 0;        // 0: no kernels
  std::int64_t communication_ps = 0;  // 0: no collective
  std::int64_t core_ps = 0;           // of the collective, on the host's cores
};

/// What a Compute op costs when it has the device to itself.
struct WorkCost {
  std::int64_t total_ps = 0;
  std::vector<traces::InnerShare> shares;  // sums to total_ps
  std::vector<PieceCost> pieces;           // serial, sums to total_ps; one layer is one entry …
  std::vector<std::uint32_t> order;        // … and this says which piece comes when
};

/// A role with what its ops cost on the ranks of one class (role × sizes × places).
struct Variant {
  std::uint32_t role = 0;
  std::uint32_t table = 0;
  const plan::Role* ops = nullptr;
  const plan::SizeTable* sizes = nullptr;
  std::shared_ptr<const OpGraph> graph;
  std::vector<std::int64_t> duration_ps;  // by op: alone on its lane; P2P: 0
  std::vector<std::int64_t> core_ps;      // by op: of duration_ps, on the host's cores
  std::vector<std::int64_t> issued_ps;    // by op: host time until it is issued, from the start
  /// By op: how long the gradients or parameters that it makes ready are synchronised; 0 for most.
  std::vector<std::int64_t> sync_after_ps;
  std::vector<bool> meets;                   // by Role::groups: whether others are in the group
  std::int64_t sync_at_start_ps = 0;         // the same of what is there from the start
  std::vector<const WorkCost*> work;         // by op: Compute and Optimizer, else null
  std::vector<std::int64_t> transfer_bytes;  // by transfer
  std::vector<std::int64_t> posted_bytes;    // by transfer: all bytes of its op in its direction

  std::int64_t bytes_of(const plan::Op& op) const { return sizes->bytes[op.size].value(); }
};

/// Which transfer of the peer's role meets which of ours, and how long it takes. Shared by all
/// pairs of ranks that are alike.
struct MatchTable {
  std::vector<std::uint32_t> partner;  // by transfer: the peer's transfer; kNone32: none or empty
  std::vector<std::int64_t> duration_ps;  // by transfer
  std::vector<std::int64_t> core_ps;      // by transfer: of it, on the host's cores
  std::vector<std::int64_t> timed_bytes;  // by transfer: what duration_ps is of
};

/// Ranks simulated once.
struct LoweredClass {
  base::Rank representative{0};
  std::vector<base::Rank> members;
  std::uint32_t variant = 0;
  std::vector<std::uint32_t> communicators;  // by Role::groups
  std::vector<std::uint32_t> peers;          // by Role::peers: class on the other side
  std::vector<const MatchTable*> matches;    // by Role::peers
};

/// The classes whose ranks meet in one communicator.
struct Communicator {
  std::vector<std::uint32_t> classes;  // ascending, each once
  std::uint32_t group = 0;             // of RankTables: one that it stands for
};

class ProgramTraffic;

struct Lowered {
  const plan::Program* program = nullptr;
  std::vector<Variant> variants;
  std::vector<LoweredClass> classes;
  std::vector<Communicator> communicators;
  std::vector<std::unique_ptr<MatchTable>> match_tables;
  std::vector<std::unique_ptr<WorkCost>> work_costs;
  std::vector<std::uint32_t> class_of_rank;
  std::shared_ptr<const ProgramTraffic> traffic;  // if it was asked for
  bool folded = false;                            // some class has more than one rank

  const plan::Role& role(std::uint32_t rank_class) const {
    return *variants[classes[rank_class].variant].ops;
  }
};

}  // namespace isthmus::sim
