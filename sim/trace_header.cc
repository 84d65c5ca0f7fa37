#include "sim/trace_header.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/hash.h"
#include "plan/model/flops.h"
#include "plan/model/sample_spans.h"
#include "plan/program/role_record.h"
#include "profiles/kernel_tables.h"
#include "sim/cost/machine_models.h"

namespace isthmus::sim {
namespace {

/// The pieces of the blocks of an expanded run, each distinct cost once.
void NamePieces(const Variant& variant, traces::RoleRecord& record) {
  std::vector<const WorkCost*> known;
  for (std::size_t op = 0; op < record.ops.size(); ++op) {
    const WorkCost* work = variant.work[op];
    if (work == nullptr || work->order.empty()) continue;
    const auto found = std::find(known.begin(), known.end(), work);
    record.ops[op].block = static_cast<std::uint32_t>(found - known.begin()) + 1;
    if (found != known.end()) continue;
    known.push_back(work);
    std::vector<traces::PieceRecord>& block = record.blocks.emplace_back();
    for (const std::uint32_t piece : work->order) {
      block.push_back({work->pieces[piece].name, work->pieces[piece].category});
    }
  }
}

traces::RoleRecord DescribeRole(const plan::Program& program, const Variant& variant,
                                const SimOptions& options) {
  traces::RoleRecord record = plan::DescribeRole(
      program, *variant.ops, program.tables[variant.table], variant.transfer_bytes);
  for (std::size_t op = 0; op < record.ops.size(); ++op) {
    if (variant.work[op] != nullptr) record.ops[op].inner_shares = variant.work[op]->shares;
  }
  if (options.expansion == Expansion::kExpanded) NamePieces(variant, record);
  return record;
}

void AddClasses(const Lowered& lowered, const topology::Cluster& cluster, traces::Header& header) {
  for (const LoweredClass& cls : lowered.classes) {
    traces::RankClass& record = header.classes.emplace_back();
    record.representative = cls.representative.value();
    record.count = static_cast<std::int32_t>(cls.members.size());
    for (const base::Rank member : cls.members) record.members.push_back(member.value());
    record.role = cls.variant;
    record.node = cluster.NodeOf(cluster.DeviceOf(cls.representative)).value();
    record.groups = cls.communicators;
    record.peers = cls.peers;
  }
  for (const Communicator& communicator : lowered.communicators)
    header.groups.push_back(communicator.classes);
}

void AddFlops(const Lowered& lowered, traces::Header& header) {
  const plan::Program& program = *lowered.program;
  double model = 0;
  double hardware = 0;
  for (const LoweredClass& cls : lowered.classes) {
    double of_rank[2] = {0, 0};
    for (const traces::OpRecord& op : header.roles[cls.variant].ops) {
      of_rank[0] += op.model_flops;
      of_rank[1] += op.hardware_flops;
    }
    const double per_step = static_cast<double>(cls.members.size()) / program.num_steps;
    model += of_rank[0] * per_step;
    hardware += of_rank[1] * per_step;
  }
  header.step_flops["model"] = model;
  header.step_flops["hardware"] = hardware;
  header.flop_convention =
      "model: forward and backward of what is trained, causal attention counted half, no "
      "recomputation";
  const std::int64_t batch = program.workload.global_batch;
  std::vector<plan::ModuleTokens> tokens;
  for (const plan::PlacedModule& module : program.modules) {
    const bool decoder = module.module.kind == plan::ModuleKind::kDecoder;
    const std::int64_t span = module.module.span_tokens;
    tokens.push_back({.module = &module.module,
                      .tokens = decoder ? program.workload.sequence_length * batch
                                        : plan::EncoderTokens(module.module, batch),
                      .span = span > 0 ? span : program.workload.sequence_length});
  }
  for (const auto convention :
       {plan::FlopConvention::kFullAttention, plan::FlopConvention::kParameters}) {
    header.step_flops[plan::ToText(convention)] = plan::StepFlops(convention, tokens).value();
  }
}

void AddModules(const plan::Program& program, traces::Header& header) {
  for (const plan::PlacedModule& placed : program.modules) {
    traces::ModuleRecord& record = header.modules.emplace_back();
    record.name = placed.module.name;
    record.kind = placed.module.kind == plan::ModuleKind::kDecoder ? "decoder"
                  : placed.module.kind == plan::ModuleKind::kVit   ? "vit"
                                                                   : "audio";
    record.layout = placed.module.layout ? plan::ToText(*placed.module.layout) : "inherit";
    record.first_rank = placed.grid.first_rank();
    record.num_ranks = placed.grid.num_ranks();
    record.parameters = static_cast<double>(plan::TotalParameters(placed.module.transformer));
  }
}

void AddBoundaries(const plan::Program& program, traces::Header& header) {
  for (std::size_t edge = 0; edge < program.edges.size(); ++edge) {
    const plan::Boundary& boundary = program.boundaries[edge];
    const plan::Module& from =
        program.modules[static_cast<std::size_t>(program.edges[edge].from)].module;
    traces::BoundaryRecord& record = header.boundaries.emplace_back();
    record.from = from.name;
    record.to = program.modules[static_cast<std::size_t>(program.edges[edge].to)].module.name;
    record.kind = plan::ToText(boundary.boundary_case);
    if (boundary.ranks.empty()) continue;
    if (boundary.factor > 1) record.kind += fmt::format(" {}", boundary.factor);
    record.kind =
        fmt::format("{} {}", boundary.colocated ? "colocated" : "non-colocated", record.kind);
    const base::Bytes element = plan::BytesOf(plan::ActivationType(from.settings));
    record.bytes_forward =
        plan::PayloadForward(boundary, program.num_microbatches, element).value();
    record.bytes_backward =
        plan::PayloadBackward(boundary, program.num_microbatches, element).value();
  }
}

std::string PeakRateKey(const plan::Program& program, const profiles::Profile& profile) {
  if (IsOfHost(profile)) return "device.peak_rate.fp32";
  if (!profiles::KernelTables(profile).empty()) {
    return "device.peak_rate." +
           std::string(plan::RateKey(program.modules.back().module.settings.precision));
  }
  for (const plan::PlacedModule& placed : program.modules) {
    if (placed.module.settings.precision == plan::DType::kFp8) return "device.peak_rate.fp8";
  }
  return "device.peak_rate.bf16";
}

// What needs neither costs nor classes.
traces::Header DescribeProgram(const plan::Program& program, const topology::Cluster& cluster,
                               const profiles::Profile& profile, const RunFacts& facts) {
  traces::Header header;
  header.kind = traces::TraceKind::kPredicted;
  header.scenario_name = facts.scenario_name;
  header.scenario_hash = facts.scenario_hash;
  header.program_hash = base::HashText(plan::Hash(program));
  header.profile_name = profile.name();
  header.profile_hash = base::HashText(profile.Hash());
  header.commit = facts.commit;
  header.machine = cluster.spec().name;
  header.seed = facts.seed;
  header.placement = plan::ToText(program.placement);
  header.num_ranks = program.num_ranks;
  header.num_steps = program.num_steps;
  header.num_microbatches = program.num_microbatches;
  header.tokens_per_step = program.workload.global_batch * program.workload.sequence_length;
  header.samples_per_step = program.workload.global_batch;
  header.peak_flops_per_gpu = profile.Value(PeakRateKey(program, profile), "FLOP/s");
  if (profile.has("island.max_peak_share")) {
    header.island_flops_limit =
        profile.Number("island.max_peak_share") * profile.Value("device.peak_rate.bf16", "FLOP/s");
  }
  header.assumptions = facts.assumptions;
  AddModules(program, header);
  AddBoundaries(program, header);
  return header;
}

}  // namespace

traces::Header DescribeRun(const Lowered& lowered, const topology::Cluster& cluster,
                           const profiles::Profile& profile, const SimOptions& options,
                           const RunFacts& facts) {
  const plan::Program& program = *lowered.program;
  traces::Header header = DescribeProgram(program, cluster, profile, facts);
  header.expanded = options.expansion == Expansion::kExpanded;
  header.folded = lowered.folded;
  for (const Variant& variant : lowered.variants) {
    header.roles.push_back(DescribeRole(program, variant, options));
  }
  AddClasses(lowered, cluster, header);
  AddFlops(lowered, header);
  return header;
}

traces::Header DescribeMemory(const plan::Program& program, const std::vector<RankMemory>& kinds,
                              const topology::Cluster& cluster, const profiles::Profile& profile,
                              const RunFacts& facts) {
  traces::Header header = DescribeProgram(program, cluster, profile, facts);
  header.folded = kinds.size() < static_cast<std::size_t>(program.num_ranks);
  for (const RankMemory& kind : kinds) {
    header.roles.emplace_back().name = program.role(kind.ranks.front()).name;
    traces::RankClass& record = header.classes.emplace_back();
    record.representative = kind.ranks.front().value();
    record.count = static_cast<std::int32_t>(kind.ranks.size());
    for (const base::Rank rank : kind.ranks) record.members.push_back(rank.value());
    record.role = static_cast<std::uint32_t>(header.roles.size() - 1);
    record.node = cluster.NodeOf(cluster.DeviceOf(kind.ranks.front())).value();
  }
  return header;
}

}  // namespace isthmus::sim
