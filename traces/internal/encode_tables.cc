#include <map>
#include <string>

#include "traces/internal/tables.h"

namespace isthmus::traces::internal {
namespace {

// Texts of a table by number, each kept once.
class TextTable {
 public:
  explicit TextTable(proto::OpTable& table) : table_(table) {}

  std::uint32_t NumberOf(const std::string& text) {
    const auto next = static_cast<std::uint32_t>(numbers_.size());
    const auto [entry, is_new] = numbers_.try_emplace(text, next);
    if (is_new) table_.add_texts(text);
    return entry->second;
  }

 private:
  proto::OpTable& table_;
  std::map<std::string, std::uint32_t> numbers_;
};

void EncodeFacts(const Header& header, proto::Header& message) {
  message.set_kind(static_cast<std::uint32_t>(header.kind));
  message.set_scenario_name(header.scenario_name);
  message.set_scenario_hash(header.scenario_hash);
  message.set_program_hash(header.program_hash);
  message.set_profile_name(header.profile_name);
  message.set_profile_hash(header.profile_hash);
  message.set_commit(header.commit);
  message.set_machine(header.machine);
  message.set_seed(header.seed);
  message.set_placement(header.placement);
  message.set_num_ranks(header.num_ranks);
  message.set_num_steps(header.num_steps);
  message.set_num_microbatches(header.num_microbatches);
  message.set_tokens_per_step(header.tokens_per_step);
  message.set_samples_per_step(header.samples_per_step);
  message.set_flop_convention(header.flop_convention);
  message.set_island_flops_limit(header.island_flops_limit);
  message.set_peak_flops_per_gpu(header.peak_flops_per_gpu);
  message.set_expanded(header.expanded);
  message.set_folded(header.folded);
  for (const auto& [name, value] : header.step_flops) {
    proto::NamedNumber& entry = *message.add_step_flops();
    entry.set_name(name);
    entry.set_value(value);
  }
  for (const std::string& assumption : header.assumptions) message.add_assumptions(assumption);
}

void Encode(const Measurement& measurement, proto::Measurement& message) {
  for (const std::int64_t time : measurement.step_times_ps) message.add_step_times(time);
  message.set_num_warmup_steps(measurement.num_warmup_steps);
  message.set_recorded_step(measurement.recorded_step);
  for (const auto& [name, text] : measurement.software) {
    proto::NamedText& entry = *message.add_software();
    entry.set_name(name);
    entry.set_text(text);
  }
}

void Encode(const ModuleRecord& module, proto::Module& message) {
  message.set_name(module.name);
  message.set_kind(module.kind);
  message.set_layout(module.layout);
  message.set_first_rank(module.first_rank);
  message.set_num_ranks(module.num_ranks);
  message.set_parameters(module.parameters);
}

void Encode(const BoundaryRecord& boundary, proto::Boundary& message) {
  message.set_from(boundary.from);
  message.set_to(boundary.to);
  message.set_kind(boundary.kind);
  message.set_bytes_forward(boundary.bytes_forward);
  message.set_bytes_backward(boundary.bytes_backward);
}

void Encode(const RankClass& rank_class, proto::RankClass& message) {
  message.set_representative(rank_class.representative);
  message.set_count(rank_class.count);
  message.set_role(rank_class.role);
  message.set_node(rank_class.node);
  std::uint32_t last = 0;
  for (const std::int32_t member : rank_class.members) {
    const auto value = static_cast<std::uint32_t>(member);
    message.add_member_deltas(static_cast<std::int32_t>(value - last));
    last = value;
  }
  for (const std::uint32_t group : rank_class.groups) message.add_groups(group);
  for (const std::uint32_t peer : rank_class.peers) message.add_peers(peer);
}

void Encode(const OpRecord& op, TextTable& texts, proto::Op& message) {
  message.set_name(texts.NumberOf(op.name));
  message.set_category(static_cast<std::uint32_t>(op.category));
  message.set_kind(texts.NumberOf(op.kind));
  message.set_action(texts.NumberOf(op.action));
  message.set_module(op.module);
  message.set_chunk(op.chunk);
  message.set_lane(op.lane);
  message.set_microbatch(op.microbatch);
  message.set_step(op.step);
  message.set_group(op.group);
  message.set_ends_backward(op.ends_backward);
  message.set_model_flops(op.model_flops);
  message.set_hardware_flops(op.hardware_flops);
  message.set_bytes(op.bytes);
  for (const Dependency& dependency : op.dependencies) {
    message.add_dependency_ops(dependency.op);
    message.add_dependency_transfers(dependency.transfer);
  }
  for (const TransferRecord& transfer : op.transfers) {
    message.add_transfer_sends(transfer.sends);
    message.add_transfer_peers(transfer.peer);
    message.add_transfer_bytes(transfer.bytes);
  }
  for (const InnerShare& share : op.inner_shares) {
    message.add_inner_categories(static_cast<std::uint32_t>(share.category));
    message.add_inner_durations(share.duration_ps);
  }
  message.set_block(op.block);
}

void Encode(const MemoryPeak& peak, proto::MemoryPeak& message) {
  message.set_rank_class(peak.rank_class);
  message.set_time_ps(peak.time_ps);
  message.set_peak_bytes(peak.peak_bytes);
  message.set_reserved_bytes(peak.reserved_bytes);
  message.set_device_bytes(peak.device_bytes);
  message.set_capacity_bytes(peak.capacity_bytes);
  message.set_verdict(peak.verdict);
  message.set_moment(peak.moment);
  message.set_phase(peak.phase);
  for (const auto& [name, bytes] : peak.categories) {
    proto::NamedBytes& entry = *message.add_categories();
    entry.set_name(name);
    entry.set_bytes(bytes);
  }
}

void EncodeKernels(const Trailer& trailer, proto::Kernels& message) {
  for (const std::string& name : trailer.kernel_names) message.add_names(name);
  KernelRun last;
  for (const KernelRun& kernel : trailer.kernels) {
    message.add_class_deltas(static_cast<std::int32_t>(kernel.rank_class - last.rank_class));
    message.add_op_deltas(static_cast<std::int32_t>(kernel.op - last.op));
    message.add_name_indices(kernel.name);
    message.add_streams(kernel.stream);
    message.add_start_deltas(kernel.start_ps - last.start_ps);
    message.add_durations(kernel.end_ps - kernel.start_ps);
    last = kernel;
  }
}

}  // namespace

void Encode(const Header& header, proto::Header& message) {
  EncodeFacts(header, message);
  if (header.measurement != Measurement{}) {
    Encode(header.measurement, *message.mutable_measurement());
  }
  for (const ModuleRecord& module : header.modules) Encode(module, *message.add_modules());
  for (const BoundaryRecord& boundary : header.boundaries) {
    Encode(boundary, *message.add_boundaries());
  }
  message.set_num_roles(static_cast<std::uint32_t>(header.roles.size()));
  for (const RankClass& rank_class : header.classes) Encode(rank_class, *message.add_classes());
  for (const std::vector<std::uint32_t>& group : header.groups) {
    proto::Group& entry = *message.add_groups();
    std::uint32_t last = 0;
    for (const std::uint32_t rank_class : group) {
      entry.add_class_deltas(static_cast<std::int32_t>(rank_class - last));
      last = rank_class;
    }
  }
}

void Encode(const RoleRecord& role, proto::RoleTable& message) {
  message.set_name(role.name);
  for (const LaneRecord& lane : role.lanes) {
    proto::Lane& entry = *message.add_lanes();
    entry.set_kind(lane.kind);
    entry.set_name(lane.name);
  }
  for (const std::string& group : role.groups) message.add_groups(group);
  message.set_num_ops(role.ops.size());
  for (const std::vector<PieceRecord>& block : role.blocks) {
    proto::PieceList& entry = *message.add_blocks();
    for (const PieceRecord& piece : block) {
      entry.add_names(piece.name);
      entry.add_categories(static_cast<std::uint32_t>(piece.category));
    }
  }
}

void Encode(std::span<const OpRecord> ops, proto::OpTable& message) {
  TextTable texts(message);
  for (const OpRecord& op : ops) Encode(op, texts, *message.add_ops());
}

void Encode(const Trailer& trailer, proto::Trailer& message) {
  message.set_end_ps(trailer.end_ps);
  for (const std::int64_t end : trailer.step_end_ps) message.add_step_end_ps(end);
  for (const MemoryPeak& peak : trailer.memory) Encode(peak, *message.add_memory());
  for (const ImposedWait& wait : trailer.waits) {
    proto::ImposedWait& entry = *message.add_waits();
    entry.set_rank_class(wait.rank_class);
    entry.set_op(wait.op);
    entry.set_start_ps(wait.start_ps);
    entry.set_end_ps(wait.end_ps);
    entry.set_straggler(wait.straggler);
  }
  for (const Slowdown& slowdown : trailer.slowdowns) {
    proto::Slowdown& entry = *message.add_slowdowns();
    entry.set_rank_class(slowdown.rank_class);
    entry.set_op(slowdown.op);
    entry.set_duration_ps(slowdown.duration_ps);
  }
  message.set_num_ops(trailer.num_ops);
  message.set_simulated_ranks(trailer.simulated_ranks);
  message.set_folded(trailer.folded);
  if (!trailer.kernels.empty()) EncodeKernels(trailer, *message.mutable_kernels());
}

}  // namespace isthmus::traces::internal
