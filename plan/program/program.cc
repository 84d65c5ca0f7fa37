#include "plan/program/program.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/hash.h"
#include "plan/model/sample_spans.h"

namespace isthmus::plan {

int Job::decoder() const {
  for (std::size_t index = 0; index < modules.size(); ++index) {
    if (modules[index].kind == ModuleKind::kDecoder) return static_cast<int>(index);
  }
  return -1;
}

std::int64_t Job::num_microbatches() const {
  const Layout& layout = *modules[static_cast<std::size_t>(decoder())].layout;
  return workload.global_batch / (workload.microbatch_size * layout.dp);
}

std::string ToText(Placement placement) {
  switch (placement) {
    case Placement::kHomogeneous:
      return "homogeneous";
    case Placement::kColocated:
      return "colocated";
    case Placement::kNonColocated:
      return "non_colocated";
  }
  return "";
}

std::vector<base::Rank> Program::Members(base::Rank rank, const GroupRef& group) const {
  switch (group.kind) {
    case GroupRef::Kind::kAxes:
      return modules[group.module].grid.Group(rank, group.axes);
    case GroupRef::Kind::kBoundary:
      return boundaries[group.edge].ranks[rank.index()].groups[group.index];
    case GroupRef::Kind::kEmbedding: {
      const std::vector<base::Rank> stages = modules[group.module].grid.Group(rank, kPp);
      return {stages.front(), stages.back()};
    }
    case GroupRef::Kind::kWorld: {
      std::vector<base::Rank> all;
      for (int index = 0; index < num_ranks; ++index) all.emplace_back(index);
      return all;
    }
  }
  return {};
}

base::Rank Program::Peer(base::Rank rank, const PeerRef& peer) const {
  if (peer.kind == PeerRef::Kind::kPipeline) {
    return modules[peer.module].grid.Neighbour(rank, Axis::kPp, peer.delta);
  }
  const RankBoundary& here = boundaries[peer.edge].ranks[rank.index()];
  std::size_t index = peer.index;
  for (const auto* messages : {&here.sends_forward, &here.receives_forward, &here.sends_backward,
                               &here.receives_backward}) {
    if (index < messages->size()) return (*messages)[index].peer;
    index -= messages->size();
  }
  ISTHMUS_CHECK(false, "rank {} has no peer {} on edge {}", rank.value(), peer.index, peer.edge);
}

Interval Program::MicrobatchTokens(std::size_t edge, std::int64_t shard,
                                   std::int64_t microbatch) const {
  const SampleSpans spans = LlmSpans(modules[static_cast<std::size_t>(edges[edge].from)].module);
  const std::int64_t first = FirstSample(shard, 0);
  const std::int64_t before = spans.TokensBefore(first);
  const std::int64_t from = first + microbatch * workload.microbatch_size;
  return {spans.TokensBefore(from) - before,
          spans.TokensBefore(from + workload.microbatch_size) - before};
}

std::size_t Program::EdgeFrom(std::uint16_t module) const {
  const auto found = std::find_if(edges.begin(), edges.end(),
                                  [&](const Edge& edge) { return edge.from == module; });
  ISTHMUS_CHECK(found != edges.end(), "module {} feeds nothing", module);
  return static_cast<std::size_t>(found - edges.begin());
}

std::uint64_t HashRole(const Role& role) {
  base::HashBuilder hash;
  hash.Add(role.name);
  for (const ModuleStage& stage : role.stages)
    hash.Add(std::uint32_t{stage.module}).Add(std::uint32_t{stage.stage});
  for (const Lane& lane : role.lanes)
    hash.Add(static_cast<std::uint32_t>(lane.kind)).Add(lane.group);
  for (const GroupRef& group : role.groups) {
    hash.Add(static_cast<std::uint32_t>(group.kind)).Add(std::uint32_t{group.module});
    hash.Add(std::uint32_t{group.axes.bits()})
        .Add(std::uint32_t{group.edge})
        .Add(std::uint32_t{group.index});
  }
  for (const PeerRef& peer : role.peers) {
    hash.Add(static_cast<std::uint32_t>(peer.kind)).Add(std::uint32_t{peer.module});
    hash.Add(std::int32_t{peer.delta}).Add(std::uint32_t{peer.edge}).Add(std::uint32_t{peer.index});
  }
  for (const Op& op : role.ops) {
    hash.Add(static_cast<std::uint32_t>(op.kind))
        .Add(std::uint32_t{op.detail})
        .Add(std::uint32_t{op.flags});
    hash.Add(static_cast<std::uint32_t>(op.purpose))
        .Add(std::uint32_t{op.lane})
        .Add(std::uint32_t{op.module});
    hash.Add(op.microbatch)
        .Add(std::uint32_t{op.chunk})
        .Add(std::int32_t{op.step})
        .Add(op.size)
        .Add(op.group);
    hash.Add(std::uint32_t{op.num_transfers}).Add(std::uint32_t{op.num_consumed});
    hash.Add(std::uint32_t{op.num_produced}).Add(std::uint32_t{op.block});
  }
  for (const Transfer& transfer : role.transfers) {
    hash.Add(transfer.sends).Add(transfer.peer).Add(transfer.value).Add(transfer.size);
  }
  for (const ValueId value : role.consumed) hash.Add(value);
  for (const ValueId value : role.produced) hash.Add(value);
  for (const Value& value : role.values) hash.Add(value.storage).Add(value.version);
  for (const Storage& storage : role.storages) {
    hash.Add(static_cast<std::uint32_t>(storage.kind))
        .Add(static_cast<std::uint32_t>(storage.category));
    hash.Add(storage.persistent)
        .Add(std::uint32_t{storage.module})
        .Add(std::uint32_t{storage.chunk});
    hash.Add(storage.microbatch).Add(storage.bucket).Add(storage.size);
  }
  return hash.digest();
}

std::uint64_t HashTable(const SizeTable& table) {
  base::HashBuilder hash;
  for (const base::Bytes bytes : table.bytes) hash.Add(bytes.value());
  for (const std::uint32_t work : table.works) hash.Add(work);
  return hash.digest();
}

namespace {

struct KernelHasher {
  base::HashBuilder& hash;
  void operator()(const Gemm& gemm) const {
    hash.Add(gemm.m)
        .Add(gemm.n)
        .Add(gemm.k)
        .Add(static_cast<std::uint32_t>(gemm.dtype))
        .Add(gemm.output_bytes.value());
  }
  void operator()(const Attention& attention) const {
    hash.Add(attention.num_sequences)
        .Add(attention.query_len)
        .Add(attention.kv_len)
        .Add(attention.heads);
    hash.Add(attention.kv_heads)
        .Add(attention.head_dim)
        .Add(attention.causal)
        .Add(attention.backward);
    hash.Add(static_cast<std::uint32_t>(attention.kernel)).Add(attention.variable_length);
  }
  void operator()(const MemoryBound& memory) const {
    hash.Add(static_cast<std::uint32_t>(memory.memory_class))
        .Add(memory.bytes.value())
        .Add(memory.launches);
  }
};

void HashWork(base::HashBuilder& hash, const Work& work) {
  hash.Add(work.name).Add(work.model_flops.value()).Add(work.transient_bytes.value());
  hash.Add(work.eager_layers);
  for (const RepeatedSegments& part : work.parts) {
    hash.Add(part.count);
    for (const Segment& segment : part.segments) {
      hash.Add(static_cast<std::uint32_t>(segment.overlap));
      for (const Kernel& kernel : segment.kernels) std::visit(KernelHasher{hash}, kernel);
      if (!segment.collective) continue;
      hash.Add(static_cast<std::uint32_t>(segment.collective->kind));
      hash.Add(std::uint32_t{segment.collective->axes.bits()});
      hash.Add(segment.collective->bytes.value()).Add(segment.collective->steps);
    }
  }
}

void HashTables(base::HashBuilder& hash, const std::vector<RankBoundary>& ranks) {
  for (const RankBoundary& rank : ranks) {
    for (const auto& group : rank.groups) {
      hash.Add(static_cast<std::uint64_t>(group.size()));
      for (const base::Rank member : group) hash.Add(member.value());
    }
    for (const auto* messages : {&rank.sends_forward, &rank.receives_forward, &rank.sends_backward,
                                 &rank.receives_backward}) {
      for (const BoundaryMessage& message : *messages) {
        hash.Add(message.peer.value()).Add(message.tokens.begin).Add(message.tokens.end);
      }
    }
  }
}

void HashBoundary(base::HashBuilder& hash, const Boundary& boundary) {
  HashTables(hash, boundary.ranks);
  for (const std::uint32_t table : boundary.table_of_microbatch) hash.Add(table);
  for (const std::vector<RankBoundary>& ranks : boundary.other_ranks) HashTables(hash, ranks);
}

}  // namespace

std::uint64_t Hash(const Program& program) {
  base::HashBuilder hash;
  hash.Add(program.num_ranks).Add(program.num_steps).Add(program.num_microbatches);
  hash.Add(static_cast<std::uint32_t>(program.placement));
  for (const PlacedModule& module : program.modules) {
    hash.Add(module.module.name).Add(module.grid.first_rank()).Add(module.grid.num_ranks());
    for (int axis = 0; axis < kNumAxes; ++axis) hash.Add(module.grid.size(static_cast<Axis>(axis)));
    for (const int layer : module.first_layer) hash.Add(layer);
    for (const std::int32_t spans : module.module.spans_of_sample) hash.Add(spans);
  }
  for (const std::int32_t sample : program.workload.sample_order) hash.Add(sample);
  for (const Boundary& boundary : program.boundaries) HashBoundary(hash, boundary);
  for (const Role& role : program.roles) hash.Add(HashRole(role));
  for (const SizeTable& table : program.tables) hash.Add(HashTable(table));
  for (const std::uint32_t role : program.role_of_rank) hash.Add(role);
  for (const std::uint32_t table : program.table_of_rank) hash.Add(table);
  for (const Work& work : program.works) HashWork(hash, work);
  return hash.digest();
}

}  // namespace isthmus::plan
