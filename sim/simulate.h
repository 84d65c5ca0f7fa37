#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/sim_time.h"
#include "base/units.h"
#include "plan/program/program.h"
#include "profiles/profile.h"
#include "sim/memory/memory_facts.h"
#include "sim/network/link_account.h"
#include "topology/cluster.h"
#include "traces/trace.h"

/// From a program to a predicted trace, in simulated time.
namespace isthmus::sim {

enum class Folding : std::uint8_t { kAuto, kOff };
enum class Expansion : std::uint8_t { kFused, kExpanded };

/// How long communication takes beside other communication.
enum class Network : std::uint8_t {
  kNccl,  // as long as alone: closed forms
  kFlow,  // messages, collectives and copies share links, max-min fair; alone as with kNccl
};

/// A job on other devices of the same cluster, which runs beside the one that is simulated.
struct OtherJob {
  std::string name;
  const plan::Program* program = nullptr;
  const profiles::Profile* profile = nullptr;
  std::vector<base::DeviceId> rank_devices;  // by rank
  base::Seconds start_after{0};
};

struct SimOptions {
  Folding folding = Folding::kAuto;
  Expansion expansion = Expansion::kFused;
  Network network = Network::kNccl;
  bool record_memory_counters = true;
  /// With kFlow and without folding: gets every flow of the program, in the order of their ends.
  LinkFlowPort on_flow;
  /// With kFlow: record Outcome::link_history. Nothing is folded then.
  bool record_links = false;
  plan::Allocator allocator = plan::Allocator::kCaching;
  /// With kFlow only: each of them begins when it says, and again as soon as it is over, for as
  /// long as the simulated job runs (JobMix). Nothing is folded then.
  std::vector<OtherJob> other_jobs;
};

/// Facts for the trace's header that simulation itself does not know.
struct RunFacts {
  std::string scenario_name;
  std::string scenario_hash;
  std::string commit;
  std::uint64_t seed = 0;
  std::vector<std::string> assumptions;
};

/// How a job beside the simulated one fared.
struct OtherJobOutcome {
  std::int64_t num_steps = 0;  // that were over before the simulated job was
  double step_s = 0;           // mean of those
  double alone_step_s = 0;     // on the same devices, without the other jobs
};

/// Why a run ended and what it took.
struct Outcome {
  bool deadlock = false;  // no op can proceed; `explanation` says which rank waits for what
  std::string explanation;
  std::int64_t end_ps = 0;
  std::uint64_t num_ops = 0;  // executed
  std::int32_t simulated_ranks = 0;
  bool folded = false;
  bool fits = true;  // no rank class is does_not_fit
  /// Of a flow network: flows, those that had to share a link, and unless ranks were folded every
  /// link that was used.
  std::uint64_t num_flows = 0;
  std::uint64_t num_shared_flows = 0;
  std::vector<LinkTraffic> links;
  std::optional<LinkHistory> link_history;  // if asked for
  std::vector<OtherJobOutcome> other_jobs;  // as SimOptions has them
  /// False where the profile states a capacity but no kernels: memory is predicted, time is not.
  bool has_times = true;
};

/// Whether the profile has kernels to price, or is of a machine of which only the capacity and
/// data-sheet figures are known.
bool HasKernels(const profiles::Profile& profile);

/// Simulates every op of `program` on the first program.num_ranks devices of `cluster`, or on the
/// one that its ranks share: then nothing is folded and blocks run fused.
///
/// With other jobs the trace, its memory and the outcome's ops are of `program` alone; flows and
/// links are of all of them.
///
/// A function of its inputs alone: equal inputs give equal events. Throws base::Error when the
/// cluster has too few devices, the profile lacks a parameter, dead links cut communicating ranks
/// off, a flow network is asked for where ranks share a device, or other jobs without one. Without
/// kernels in the profile (HasKernels) there are no events: the trace has the memory of every kind
/// of rank and an assumption that says why there is no time.
Outcome Simulate(const plan::Program& program, const topology::Cluster& cluster,
                 const profiles::Profile& profile, const SimOptions& options, const RunFacts& facts,
                 traces::TraceSink& sink);

}  // namespace isthmus::sim
