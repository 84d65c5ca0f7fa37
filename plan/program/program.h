#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "plan/boundary/boundary.h"
#include "plan/job.h"
#include "plan/layout/grid.h"
#include "plan/program/block_span.h"
#include "plan/program/op.h"

namespace isthmus::plan {

/// Lanes of a rank: one compute lane, one per communicator, one for P2P, one for copies each way.
enum class LaneKind : std::uint8_t { kCompute, kCommunicator, kP2P, kCopyToHost, kCopyToDevice };
struct Lane {
  LaneKind kind = LaneKind::kCompute;
  std::uint32_t group = kNone32;  // kCommunicator: index into Role::groups
};

/// A communicator by name, the same for all ranks of a role: the module's grid and axes, an entry
/// of an edge's boundary table, the two ends of a pipeline, or all ranks.
struct GroupRef {
  enum class Kind : std::uint8_t {
    kAxes,
    kBoundary,
    kEmbedding,  // first and last stage, other coordinates equal: ranks that share tied embeddings
    kWorld,
  };
  Kind kind = Kind::kAxes;
  std::uint16_t module = 0;  // kAxes, kEmbedding
  AxisSet axes;              // kAxes
  std::uint16_t edge = 0;    // kBoundary
  std::uint16_t index = 0;   // kBoundary: which of the rank's groups on that edge
  friend bool operator==(const GroupRef&, const GroupRef&) = default;
};

/// A peer by name: `delta` steps along pp of the module's grid (with wrap-around), or an entry of
/// an edge's boundary table.
struct PeerRef {
  enum class Kind : std::uint8_t { kPipeline, kBoundary };
  Kind kind = Kind::kPipeline;
  std::uint16_t module = 0;  // kPipeline
  std::int16_t delta = 0;    // kPipeline
  std::uint16_t edge = 0;    // kBoundary
  /// kBoundary: which of the rank's messages on that edge, counted through sends_forward,
  /// receives_forward, sends_backward, receives_backward.
  std::uint16_t index = 0;
  friend bool operator==(const PeerRef&, const PeerRef&) = default;
};

/// Which stage of a module a role holds.
struct ModuleStage {
  std::uint16_t module = 0;
  std::uint16_t stage = 0;
};

/// What all ranks of one kind do: an SPMD template. Ranks differ only in who their groups and peers
/// are (by grid coordinates and boundary tables) and in their size table.
struct Role {
  std::string name;  // "llm.0 vision.0 leader"
  std::vector<ModuleStage> stages;
  std::vector<Lane> lanes;
  std::vector<GroupRef> groups;
  std::vector<PeerRef> peers;
  std::vector<Op> ops;
  std::vector<Transfer> transfers;
  std::vector<ValueId> consumed;  // side array of ops
  std::vector<ValueId> produced;  // side array of ops; a P2P op produces what its receives deliver
  std::vector<Value> values;
  std::vector<Storage> storages;
  std::vector<BlockSpan> spans;

  std::span<const ValueId> consumed_by(const Op& op) const {
    return {consumed.data() + op.first_consumed, op.num_consumed};
  }
  std::span<const ValueId> produced_by(const Op& op) const {
    return {produced.data() + op.first_produced, op.num_produced};
  }
  std::span<const Transfer> transfers_of(const Op& op) const {
    return {transfers.data() + op.first_transfer, op.num_transfers};
  }
};

/// Sizes and works of the ranks of one data lane; ranks with equal sizes share a table.
struct SizeTable {
  std::vector<base::Bytes> bytes;  // by SizeId
  std::vector<std::uint32_t>
      works;  // by Op::size of Compute and Optimizer: index into Program::works
  friend bool operator==(const SizeTable&, const SizeTable&) = default;
};

/// A module laid over ranks.
struct PlacedModule {
  Module module;
  Grid grid;                     // homogeneous encoders: the LLM's stage 0 view
  std::vector<int> first_layer;  // by virtual stage (chunk · pp + stage): first layer, then the end
  std::vector<std::int64_t> rank_parameters;  // by stage: parameters one rank holds
  std::vector<StageContents> contents;        // by virtual stage

  /// Virtual stages of a rank.
  int num_chunks() const {
    return (static_cast<int>(first_layer.size()) - 1) / grid.size(Axis::kPp);
  }
};

/// What every rank does in `num_steps` optimizer steps: the only thing sim and backend share.
///
/// Immutable value made by Build(). Everything an executor needs is here: it decides nothing.
/// Invariant: Validate() finds nothing. Size: as many ops as the roles have, not as the ranks have.
struct Program {
  std::string name;
  Placement placement = Placement::kHomogeneous;
  int num_ranks = 0;
  int num_steps = 1;
  Workload workload;
  std::int64_t num_microbatches = 0;
  ScheduleOptions schedule;  // how calls were ordered: what bounds the microbatches in flight
  std::vector<PlacedModule> modules;
  std::vector<Edge> edges;
  std::vector<Boundary> boundaries;  // by edge; homogeneous edges have an empty one
  std::vector<Role> roles;
  std::vector<std::uint32_t> role_of_rank;
  std::vector<std::uint32_t> table_of_rank;
  std::vector<SizeTable> tables;
  std::vector<Work> works;
  std::vector<std::string> passes;  // names of the passes that ran, in order

  const Role& role(base::Rank rank) const {
    return roles[role_of_rank[static_cast<std::size_t>(rank.value())]];
  }
  const SizeTable& table(base::Rank rank) const {
    return tables[table_of_rank[static_cast<std::size_t>(rank.value())]];
  }
  base::Bytes Size(base::Rank rank, SizeId size) const { return table(rank).bytes[size]; }
  const Work& WorkOf(base::Rank rank, const Op& op) const {
    return works[table(rank).works[op.size]];
  }

  /// Members of the communicator that `rank` calls `group`, in communicator order.
  std::vector<base::Rank> Members(base::Rank rank, const GroupRef& group) const;
  base::Rank Peer(base::Rank rank, const PeerRef& peer) const;
  /// Place in the global batch of a microbatch's first sample; the others follow. Shards are the
  /// decoder's dp indices.
  std::int64_t FirstSample(std::int64_t shard, std::int64_t microbatch) const {
    return (shard * num_microbatches + microbatch) * workload.microbatch_size;
  }
  /// Tokens of an edge that belong to a microbatch of a shard, counted from the shard's first ones.
  Interval MicrobatchTokens(std::size_t edge, std::int64_t shard, std::int64_t microbatch) const;
  /// Index of the one edge that leaves an encoder.
  std::size_t EdgeFrom(std::uint16_t module) const;
};

/// 64-bit fingerprint of everything above that decides what ranks do; equal on every machine.
std::uint64_t Hash(const Program& program);
/// Fingerprints of a role and of a size table alone.
std::uint64_t HashRole(const Role& role);
std::uint64_t HashTable(const SizeTable& table);

/// Builds the program of a job. Throws base::Error on what a job can't have (naming it).
Program Build(const Job& job);

}  // namespace isthmus::plan
