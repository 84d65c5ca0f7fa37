#include <limits>
#include <string>

#include <fmt/format.h>

#include "traces/internal/tables.h"

namespace isthmus::traces::internal {
namespace {

Measurement Decode(const proto::Measurement& message) {
  Measurement measurement;
  measurement.step_times_ps.assign(message.step_times().begin(), message.step_times().end());
  measurement.num_warmup_steps = message.num_warmup_steps();
  measurement.recorded_step = message.recorded_step();
  for (const proto::NamedText& entry : message.software()) {
    measurement.software[entry.name()] = entry.text();
  }
  return measurement;
}

Defect DecodeFacts(const proto::Header& message, Header& header) {
  if (message.kind() > static_cast<std::uint32_t>(TraceKind::kMeasured)) {
    return fmt::format("is of the unknown kind {}", message.kind());
  }
  header.kind = static_cast<TraceKind>(message.kind());
  header.scenario_name = message.scenario_name();
  header.scenario_hash = message.scenario_hash();
  header.program_hash = message.program_hash();
  header.profile_name = message.profile_name();
  header.profile_hash = message.profile_hash();
  header.commit = message.commit();
  header.machine = message.machine();
  header.seed = message.seed();
  header.placement = message.placement();
  header.num_ranks = message.num_ranks();
  header.num_steps = message.num_steps();
  header.num_microbatches = message.num_microbatches();
  header.tokens_per_step = message.tokens_per_step();
  header.samples_per_step = message.samples_per_step();
  header.flop_convention = message.flop_convention();
  header.island_flops_limit = message.island_flops_limit();
  header.peak_flops_per_gpu = message.peak_flops_per_gpu();
  header.expanded = message.expanded();
  header.folded = message.folded();
  for (const proto::NamedNumber& entry : message.step_flops()) {
    header.step_flops[entry.name()] = entry.value();
  }
  header.measurement = Decode(message.measurement());
  header.assumptions.assign(message.assumptions().begin(), message.assumptions().end());
  return std::nullopt;
}

ModuleRecord Decode(const proto::Module& message) {
  return {.name = message.name(),
          .kind = message.kind(),
          .layout = message.layout(),
          .first_rank = message.first_rank(),
          .num_ranks = message.num_ranks(),
          .parameters = message.parameters()};
}

BoundaryRecord Decode(const proto::Boundary& message) {
  return {.from = message.from(),
          .to = message.to(),
          .kind = message.kind(),
          .bytes_forward = message.bytes_forward(),
          .bytes_backward = message.bytes_backward()};
}

RankClass Decode(const proto::RankClass& message) {
  RankClass rank_class;
  rank_class.representative = message.representative();
  rank_class.count = message.count();
  rank_class.role = message.role();
  rank_class.node = message.node();
  std::uint32_t member = 0;
  for (const std::int32_t delta : message.member_deltas()) {
    member += static_cast<std::uint32_t>(delta);
    rank_class.members.push_back(static_cast<std::int32_t>(member));
  }
  rank_class.groups.assign(message.groups().begin(), message.groups().end());
  rank_class.peers.assign(message.peers().begin(), message.peers().end());
  return rank_class;
}

// Whether the numbers fit the record's narrower fields and the columns belong together.
Defect DefectOf(const proto::Op& message, int num_texts) {
  constexpr std::uint32_t kMax16 = std::numeric_limits<std::uint16_t>::max();
  for (const std::uint32_t text : {message.name(), message.kind(), message.action()}) {
    if (text >= static_cast<std::uint32_t>(num_texts)) {
      return fmt::format("has an op that names text {} of {}", text, num_texts);
    }
  }
  if (message.category() >= kNumCategories) {
    return fmt::format("has an op of the unknown category {}", message.category());
  }
  for (const std::uint32_t category : message.inner_categories()) {
    if (category >= kNumCategories) {
      return fmt::format("has a piece of the unknown category {}", category);
    }
  }
  if (message.module() > kMax16 || message.chunk() > kMax16 || message.lane() > kMax16) {
    return "has an op whose module, chunk or lane is out of range";
  }
  if (message.dependency_ops_size() != message.dependency_transfers_size() ||
      message.transfer_sends_size() != message.transfer_peers_size() ||
      message.transfer_sends_size() != message.transfer_bytes_size() ||
      message.inner_categories_size() != message.inner_durations_size()) {
    return "has an op with columns of different lengths";
  }
  return std::nullopt;
}

// Needs a message without defect.
OpRecord Decode(const proto::Op& message, const proto::OpTable& table) {
  OpRecord op;
  op.name = table.texts(static_cast<int>(message.name()));
  op.category = static_cast<Category>(message.category());
  op.kind = table.texts(static_cast<int>(message.kind()));
  op.action = table.texts(static_cast<int>(message.action()));
  op.module = static_cast<std::uint16_t>(message.module());
  op.chunk = static_cast<std::uint16_t>(message.chunk());
  op.lane = static_cast<std::uint16_t>(message.lane());
  op.microbatch = message.microbatch();
  op.step = message.step();
  op.group = message.group();
  op.ends_backward = message.ends_backward();
  op.model_flops = message.model_flops();
  op.hardware_flops = message.hardware_flops();
  op.bytes = message.bytes();
  op.block = message.block();
  for (int index = 0; index < message.dependency_ops_size(); ++index) {
    op.dependencies.push_back({message.dependency_ops(index), message.dependency_transfers(index)});
  }
  for (int index = 0; index < message.transfer_sends_size(); ++index) {
    op.transfers.push_back({message.transfer_sends(index), message.transfer_peers(index),
                            message.transfer_bytes(index)});
  }
  for (int index = 0; index < message.inner_categories_size(); ++index) {
    op.inner_shares.push_back(
        {static_cast<Category>(message.inner_categories(index)), message.inner_durations(index)});
  }
  return op;
}

MemoryPeak Decode(const proto::MemoryPeak& message) {
  MemoryPeak peak;
  peak.rank_class = message.rank_class();
  peak.time_ps = message.time_ps();
  peak.peak_bytes = message.peak_bytes();
  peak.reserved_bytes = message.reserved_bytes();
  peak.device_bytes = message.device_bytes();
  peak.capacity_bytes = message.capacity_bytes();
  peak.verdict = message.verdict();
  peak.moment = message.moment();
  peak.phase = message.phase();
  for (const proto::NamedBytes& entry : message.categories()) {
    peak.categories[entry.name()] = entry.bytes();
  }
  return peak;
}

Defect DecodeKernels(const proto::Kernels& message, Trailer& trailer) {
  trailer.kernel_names.assign(message.names().begin(), message.names().end());
  const int count = message.class_deltas_size();
  for (const int size :
       {message.op_deltas_size(), message.name_indices_size(), message.streams_size(),
        message.start_deltas_size(), message.durations_size()}) {
    if (size != count) return "has kernels with columns of different lengths";
  }
  // In unsigned numbers: deltas of a damaged file may wrap.
  std::uint32_t rank_class = 0;
  std::uint32_t op = 0;
  std::uint64_t start = 0;
  for (int index = 0; index < count; ++index) {
    rank_class += static_cast<std::uint32_t>(message.class_deltas(index));
    op += static_cast<std::uint32_t>(message.op_deltas(index));
    start += static_cast<std::uint64_t>(message.start_deltas(index));
    const std::uint64_t end = start + static_cast<std::uint64_t>(message.durations(index));
    trailer.kernels.push_back({.rank_class = rank_class,
                               .op = op,
                               .name = message.name_indices(index),
                               .stream = message.streams(index),
                               .start_ps = static_cast<std::int64_t>(start),
                               .end_ps = static_cast<std::int64_t>(end)});
  }
  return std::nullopt;
}

}  // namespace

Defect Decode(const proto::Header& message, Header& header) {
  if (Defect defect = DecodeFacts(message, header)) return defect;
  for (const proto::Module& module : message.modules()) header.modules.push_back(Decode(module));
  for (const proto::Boundary& boundary : message.boundaries()) {
    header.boundaries.push_back(Decode(boundary));
  }
  for (const proto::RankClass& entry : message.classes()) header.classes.push_back(Decode(entry));
  for (const proto::Group& entry : message.groups()) {
    std::vector<std::uint32_t> group;
    std::uint32_t rank_class = 0;
    for (const std::int32_t delta : entry.class_deltas()) {
      rank_class += static_cast<std::uint32_t>(delta);
      group.push_back(rank_class);
    }
    header.groups.push_back(std::move(group));
  }
  return std::nullopt;
}

Defect Decode(const proto::RoleTable& message, RoleRecord& role) {
  role.name = message.name();
  for (const proto::Lane& lane : message.lanes()) role.lanes.push_back({lane.kind(), lane.name()});
  role.groups.assign(message.groups().begin(), message.groups().end());
  for (const proto::PieceList& entry : message.blocks()) {
    if (entry.names_size() != entry.categories_size()) {
      return "has a block with columns of different lengths";
    }
    std::vector<PieceRecord>& block = role.blocks.emplace_back();
    for (int index = 0; index < entry.names_size(); ++index) {
      if (entry.categories(index) >= kNumCategories) {
        return fmt::format("has a piece of the unknown category {}", entry.categories(index));
      }
      block.push_back({entry.names(index), static_cast<Category>(entry.categories(index))});
    }
  }
  return std::nullopt;
}

Defect Decode(const proto::OpTable& message, std::vector<OpRecord>& ops) {
  for (const proto::Op& op : message.ops()) {
    if (Defect defect = DefectOf(op, message.texts_size())) return defect;
    ops.push_back(Decode(op, message));
  }
  return std::nullopt;
}

Defect Decode(const proto::Trailer& message, Trailer& trailer) {
  trailer.end_ps = message.end_ps();
  trailer.step_end_ps.assign(message.step_end_ps().begin(), message.step_end_ps().end());
  for (const proto::MemoryPeak& peak : message.memory()) trailer.memory.push_back(Decode(peak));
  for (const proto::ImposedWait& wait : message.waits()) {
    trailer.waits.push_back({.rank_class = wait.rank_class(),
                             .op = wait.op(),
                             .start_ps = wait.start_ps(),
                             .end_ps = wait.end_ps(),
                             .straggler = wait.straggler()});
  }
  for (const proto::Slowdown& slowdown : message.slowdowns()) {
    trailer.slowdowns.push_back({.rank_class = slowdown.rank_class(),
                                 .op = slowdown.op(),
                                 .duration_ps = slowdown.duration_ps()});
  }
  trailer.num_ops = message.num_ops();
  trailer.simulated_ranks = message.simulated_ranks();
  trailer.folded = message.folded();
  return DecodeKernels(message.kernels(), trailer);
}

}  // namespace isthmus::traces::internal
