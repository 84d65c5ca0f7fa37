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
#include "sim/engine/job_mix.h"
#include "sim/engine/lower.h"
#include "sim/engine/program_traffic.h"
#include "sim/engine_setup.h"
#include "sim/flow_watch.h"
#include "sim/memory/ledger.h"
#include "sim/network/flow_network.h"
#include "sim/other_jobs.h"
#include "sim/trace_header.h"

namespace isthmus::sim {
namespace {

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
void ReportTraffic(const FlowNetwork& network, const Traffic& traffic, bool folded,
                   Outcome& outcome) {
  outcome.num_flows = network.num_flows();
  outcome.num_shared_flows = network.num_shared_flows();
  if (folded) return;
  for (std::size_t link = 0; link < network.accounts().size(); ++link)
    outcome.links.push_back({traffic.links[link].link, network.accounts()[link]});
}

/// Runs the program beside the other jobs, over the network that they share.
EngineResult RunOnFlows(const Lowered& lowered, const Traffic& traffic, const SimOptions& options,
                        const OtherJobs& others, MixedJob first, Outcome& outcome) {
  std::vector<const Lowered*> programs = {&lowered};
  std::vector<MixedJob> jobs = others.Mixed();
  for (const MixedJob& job : jobs) programs.push_back(job.lowered);
  jobs.insert(jobs.begin(), std::move(first));
  FlowWatch watch(traffic, std::move(programs), options);
  FlowNetwork network(traffic, LoadFlowSolver, watch.EndPort(), watch.StartPort());
  JobMix mix(network, std::move(jobs));
  watch.Know(mix);
  EngineResult result = mix.Run();
  ReportTraffic(network, traffic, lowered.folded, outcome);
  outcome.link_history = watch.History(result.end_ps);
  outcome.other_jobs = others.Outcomes(mix.others());
  return result;
}

void CheckNetwork(const topology::Cluster& cluster, const MachineModels& models,
                  const SimOptions& options) {
  if (options.network == Network::kNccl && !options.other_jobs.empty()) {
    throw base::Error(
        "error: other_jobs: with the network nccl every message takes what it takes alone, so no "
        "other job could slow it\n  hint: --network flow, or leave the other jobs out: --set "
        "other_jobs=[]");
  }
  if (options.network == Network::kNccl || !models.shares_device) return;
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
  CheckNetwork(cluster, models, options);
  const bool flows = options.network == Network::kFlow;
  std::optional<JitterModel> jitter;
  if (cluster.spec().jitter) jitter.emplace(*cluster.spec().jitter);
  // With jitter no two ranks do the same.
  const bool fold = options.folding == Folding::kAuto && !models.shares_device &&
                    !options.record_links && !jitter && options.other_jobs.empty();
  const CostModels costs = CostsOf(models, profile);
  OtherJobs others(options, program, cluster);
  Traffic shared;  // by all jobs
  const Lowered lowered = others.empty() ? Lower(program, cluster, costs, fold, flows)
                                         : others.LowerBeside(program, cluster, costs, shared);
  SimOptions run = options;
  // Ranks that share are held together by their inner collectives anyway.
  if (models.shares_device) run.expansion = Expansion::kFused;
  sink.OnHeader(DescribeRun(lowered, cluster, profile, run, facts));
  Outcome outcome;
  MixedJob job{&lowered, OptionsOf(models, profile, run, lowered),
               [&sink](std::span<const traces::Event> events) { sink.OnEvents(events); }};
  if (jitter) job.options.jitter = &*jitter;
  const EngineResult result =
      flows ? RunOnFlows(lowered, others.empty() ? lowered.traffic->traffic() : shared, options,
                         others, std::move(job), outcome)
            : Engine(lowered, std::move(job.options), std::move(job.port)).Run();

  outcome.deadlock = result.deadlock;
  outcome.end_ps = result.end_ps;
  outcome.num_ops = result.num_ops;
  outcome.simulated_ranks = static_cast<std::int32_t>(lowered.classes.size());
  outcome.folded = lowered.folded;
  if (outcome.deadlock) outcome.explanation = Explain(lowered, result);
  sink.OnTrailer(Summarise(lowered, profile, options, models.shares_device, result, sink, outcome));
  return outcome;
}

}  // namespace isthmus::sim
