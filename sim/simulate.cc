#include "sim/simulate.h"

#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/sim_time.h"
#include "plan/program/print.h"
#include "profiles/kernel_tables.h"
#include "sim/cost/jitter_model.h"
#include "sim/cost/machine_models.h"
#include "sim/engine/engine.h"
#include "sim/engine/lower.h"
#include "sim/engine/program_traffic.h"
#include "sim/memory/ledger.h"
#include "sim/network/flow_network.h"
#include "sim/network/link_load.h"
#include "sim/trace_header.h"

namespace isthmus::sim {
namespace {

/// Share of a rank's busy time that it waits for stragglers: nothing within one node.
double StragglerShare(const profiles::Profile& profile, int num_ranks) {
  const double base_gpus = profile.Number("step.straggler_base_gpus");
  if (num_ranks <= base_gpus) return 0;
  return profile.Number("step.straggler_per_doubling") * std::log2(num_ranks / base_gpus);
}

CostModels CostsOf(const MachineModels& models, const profiles::Profile& profile) {
  CostModels costs{.segments = models.segments.get(), .collectives = models.collectives.get()};
  if (models.shares_device) {
    costs.host_order = HostOrder::kBlocking;
    costs.op_issue = models.op_issue;
  } else {
    costs.host = HostModel(profile);
  }
  return costs;
}

EngineOptions OptionsOf(const MachineModels& models, const profiles::Profile& profile,
                        const SimOptions& options, const Lowered& lowered) {
  EngineOptions engine;
  engine.expanded = options.expansion == Expansion::kExpanded;
  if (models.shares_device) {
    engine.sharing = {.cores_of_device = {models.cores},
                      .speeds = models.speeds,
                      .device_of_class = std::vector<int>(lowered.classes.size(), 0)};
    return engine;
  }
  engine.straggler_share = StragglerShare(profile, lowered.program->num_ranks);
  engine.sync_contention = models.segments->gradient_sync_share();
  engine.step_overhead_ps = base::ToPicoseconds(profile.Time("step.fixed_overhead")).value();
  return engine;
}

void CheckRoom(const plan::Program& program, const topology::Cluster& cluster) {
  if (program.num_ranks <= cluster.num_ranks()) return;
  throw base::Error(fmt::format("the job needs {} ranks, the cluster {} has room for {}",
                                program.num_ranks, cluster.spec().name, cluster.num_ranks()));
}

/// Whom the blocked op waits for: ranks that take no message of it, or its communicator.
std::string Awaited(const Lowered& lowered, const EngineResult& result) {
  const LoweredClass& cls = lowered.classes[result.blocked_class];
  const Variant& variant = lowered.variants[cls.variant];
  const plan::Op& op = variant.ops->ops[result.blocked_op];
  if (op.kind != plan::OpKind::kP2P) return op.group == plan::kNone32 ? "" : " for its group";
  std::string awaited;
  for (std::uint32_t at = op.first_transfer; at < op.first_transfer + op.num_transfers; ++at) {
    const bool open = result.times[result.blocked_class].transfer_end_ps[at] < 0;
    if (!open || variant.transfer_bytes[at] == 0) continue;
    const plan::Transfer& transfer = variant.ops->transfers[at];
    awaited += fmt::format("{} rank {} to {}", awaited.empty() ? " for" : ",",
                           lowered.classes[cls.peers[transfer.peer]].representative.value(),
                           transfer.sends ? "receive" : "send");
  }
  return awaited;
}

std::string Explain(const Lowered& lowered, const EngineResult& result) {
  const LoweredClass& cls = lowered.classes[result.blocked_class];
  const plan::Role& role = lowered.role(result.blocked_class);
  return fmt::format("deadlock: rank {} waits for ever{} in op {} ({})", cls.representative.value(),
                     Awaited(lowered, result), result.blocked_op,
                     plan::Describe(*lowered.program, role, role.ops[result.blocked_op]));
}

/// Of a folded run links stand for others, so it tells of none.
void ReportTraffic(const FlowNetwork& network, const Lowered& lowered, Outcome& outcome) {
  outcome.num_flows = network.num_flows();
  outcome.num_shared_flows = network.num_shared_flows();
  if (lowered.folded) return;
  for (std::size_t link = 0; link < network.accounts().size(); ++link)
    outcome.links.push_back(
        {lowered.traffic->traffic().links[link].link, network.accounts()[link]});
}

FlowNetwork::RecordPort EndPort(const SimOptions& options, const Lowered& lowered,
                                std::optional<LinkLoad>& load, const Engine*& owners) {
  const bool tells = options.on_flow && !lowered.folded;
  if (!tells && !load) return nullptr;
  return [&, tells](const FlowRecord& flow) {
    if (load) load->End(flow);
    if (!tells) return;
    const auto [cls, op, inner] = owners->OwnerOf(flow.tag);
    options.on_flow({cls, op, inner, flow.purpose,
                     lowered.traffic->traffic().paths[flow.path].links, flow.bytes, flow.start_ps,
                     flow.end_ps, flow.alone_ps});
  };
}

FlowNetwork::RecordPort StartPort(const Lowered& lowered, std::optional<LinkLoad>& load,
                                  const Engine*& owners) {
  if (!load) return nullptr;
  return [&](const FlowRecord& flow) {
    const auto [cls, index, inner] = owners->OwnerOf(flow.tag);
    const plan::Op& op = lowered.role(cls).ops[index];
    load->Begin(flow, {op.purpose, op.module, op.kind, op.detail});
  };
}

void CheckNetwork(const topology::Cluster& cluster, const MachineModels& models, Network network) {
  if (network == Network::kNccl || !models.shares_device) return;
  throw base::Error(
      fmt::format("error: the ranks of cluster {} share one device: there are no links that flows "
                  "could share\n  hint: leave the network at nccl",
                  cluster.spec().name));
}

// Where nothing prices a kernel: memory needs the program alone.
Outcome PredictOnlyMemory(const plan::Program& program, const topology::Cluster& cluster,
                          const profiles::Profile& profile, const SimOptions& options,
                          RunFacts facts, traces::TraceSink& sink) {
  facts.assumptions.push_back(
      fmt::format("no time is predicted: profile {} has no kernels (`gemm.*`), only capacity and "
                  "data-sheet figures",
                  profile.name()));
  const std::vector<RankMemory> kinds =
      PredictMemory(program, ReadMemoryFacts(profile, options.allocator));
  sink.OnHeader(DescribeMemory(program, kinds, cluster, profile, facts));
  Outcome outcome{.simulated_ranks = static_cast<std::int32_t>(kinds.size()), .has_times = false};
  traces::Trailer trailer;
  trailer.simulated_ranks = outcome.simulated_ranks;
  trailer.folded = outcome.simulated_ranks < program.num_ranks;
  for (const RankMemory& kind : kinds) {
    outcome.fits = outcome.fits && kind.peak.verdict != "does_not_fit";
    trailer.memory.push_back(kind.peak);
  }
  sink.OnTrailer(trailer);
  return outcome;
}

traces::Trailer Summarise(const Lowered& lowered, const profiles::Profile& profile,
                          const SimOptions& options, bool shares_device, const EngineResult& result,
                          traces::TraceSink& sink, Outcome& outcome) {
  traces::Trailer trailer{.end_ps = result.end_ps,
                          .step_end_ps = result.step_end_ps,
                          .waits = result.waits,
                          .slowdowns = result.slowdowns};
  trailer.num_ops = result.num_ops;
  trailer.simulated_ranks = static_cast<std::int32_t>(lowered.classes.size());
  trailer.folded = lowered.folded;
  MemoryFacts facts = ReadMemoryFacts(profile, options.allocator);
  if (shares_device) facts.capacity_bytes /= lowered.program->num_ranks;
  // Ranks of one role with one table of sizes hold the same, at times of their own.
  std::vector<std::optional<Ledger>> ledgers(lowered.variants.size());
  for (std::uint32_t cls = 0; cls < lowered.classes.size(); ++cls) {
    const LoweredClass& here = lowered.classes[cls];
    const plan::Program& program = *lowered.program;
    std::optional<Ledger>& ledger = ledgers[here.variant];
    if (!ledger) ledger.emplace(program, lowered.role(cls), program.table(here.representative));
    const int communicators = CountCommunicators(program, here.representative);
    traces::MemoryPeak peak = ledger->Peak(facts, communicators, &result.times[cls]);
    peak.rank_class = cls;
    outcome.fits = outcome.fits && peak.verdict != "does_not_fit";
    trailer.memory.push_back(std::move(peak));
    if (options.record_memory_counters) {
      sink.OnMemory(ledger->Counters(cls, facts, result.times[cls]));
    }
  }
  return trailer;
}

}  // namespace

bool HasKernels(const profiles::Profile& profile) {
  return !profiles::KernelTables(profile).empty() || !profile.KeysUnder("gemm.").empty();
}

Outcome Simulate(const plan::Program& program, const topology::Cluster& cluster,
                 const profiles::Profile& profile, const SimOptions& options, const RunFacts& facts,
                 traces::TraceSink& sink) {
  CheckRoom(program, cluster);
  if (!HasKernels(profile)) {
    return PredictOnlyMemory(program, cluster, profile, options, facts, sink);
  }
  const MachineModels models = MakeModels(cluster.spec(), profile);
  CheckNetwork(cluster, models, options.network);
  const bool flows = options.network == Network::kFlow;
  std::optional<JitterModel> jitter;
  if (cluster.spec().jitter) jitter.emplace(*cluster.spec().jitter);
  // With jitter no two ranks do the same.
  const bool fold = options.folding == Folding::kAuto && !models.shares_device &&
                    !options.record_links && !jitter;
  const Lowered lowered = Lower(program, cluster, CostsOf(models, profile), fold, flows);
  SimOptions run = options;
  // Ranks that share are held together by their inner collectives anyway.
  if (models.shares_device) run.expansion = Expansion::kFused;
  sink.OnHeader(DescribeRun(lowered, cluster, profile, run, facts));
  EngineOptions engine_options = OptionsOf(models, profile, run, lowered);
  if (jitter) engine_options.jitter = &*jitter;
  std::optional<FlowNetwork> network;
  std::optional<LinkLoad> load;
  const Engine* owners = nullptr;  // of what flows: known once the engine is
  if (flows) {
    const Traffic& traffic = lowered.traffic->traffic();
    if (options.record_links) load.emplace(traffic);
    network.emplace(traffic, LoadFlowSolver, EndPort(options, lowered, load, owners),
                    StartPort(lowered, load, owners));
    engine_options.network = &*network;
  }
  Engine engine(lowered, engine_options,
                [&sink](std::span<const traces::Event> events) { sink.OnEvents(events); });
  owners = &engine;
  const EngineResult result = engine.Run();

  Outcome outcome{.deadlock = result.deadlock, .end_ps = result.end_ps, .num_ops = result.num_ops};
  outcome.simulated_ranks = static_cast<std::int32_t>(lowered.classes.size());
  outcome.folded = lowered.folded;
  if (network) ReportTraffic(*network, lowered, outcome);
  if (load) outcome.link_history = std::move(*load).History(result.end_ps);
  if (outcome.deadlock) outcome.explanation = Explain(lowered, result);
  sink.OnTrailer(Summarise(lowered, profile, options, models.shares_device, result, sink, outcome));
  return outcome;
}

}  // namespace isthmus::sim
