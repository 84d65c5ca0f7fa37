#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reports/link_figures.h"
#include "traces/trace.h"

/// What a run comes down to: the numbers people read, computed from traces alone.
namespace isthmus::reports {

/// What an instant of a rank is spent on. Every instant has exactly one use.
enum class TimeUse : std::uint8_t {
  kCompute,      // the compute lane is busy (the optimizer included)
  kCopy,         // waits for a copy to or from the host
  kBubble,       // waits for another stage's work, or has nothing left to do
  kExposedComm,  // waits for bytes on the wire
  kStraggler,    // waits for the last rank of a group
  kHost,         // launch gaps, fixed overheads, and what nothing explains
};
inline constexpr int kNumTimeUses = 6;
const char* ToText(TimeUse use);

/// Fractions of the time by TimeUse; added up in order they are exactly 1.
using TimeShares = std::array<double, kNumTimeUses>;

/// A rank class's time in picoseconds; sums to Figures::window_ps.
struct ClassTime {
  std::uint32_t role = 0;
  std::int32_t representative = 0;
  std::int32_t count = 1;
  std::array<std::int64_t, kNumTimeUses> use_ps{};
  std::array<std::int64_t, traces::kNumCategories> exposed_ps{};  // kExposedComm by category
};

struct RoleTime {
  std::string role;
  std::int32_t ranks = 0;
  TimeShares shares{};  // mean over the role's ranks
};

/// Exposed communication of one kind, mean over all ranks, per step.
struct ExposedComm {
  std::string kind;
  double seconds = 0;
};

struct BoundaryFigure {
  std::string from;
  std::string to;
  std::string kind;
  std::int64_t bytes_forward = 0;  // payload per step, see traces::BoundaryRecord
  std::int64_t bytes_backward = 0;
  double exposed_s = 0;        // per step, mean over all ranks
  double worst_exposed_s = 0;  // per step, of the rank that waits longest
};

/// An encoder on ranks of its own against the LLM's pipeline; see Islands.
struct IslandFigure {
  std::string module;
  std::int32_t ranks = 0;
  double utilisation = 0;            // F + B of its busiest rank over the LLM's busiest
  double tflops_per_gpu = 0;         // executed, while it computes
  double needed_tflops_per_gpu = 0;  // to keep up with the LLM
  double limit_tflops_per_gpu = 0;   // what a GPU can be asked for; 0: unknown

  bool is_saturated() const {
    return utilisation > 1 ||
           (limit_tflops_per_gpu > 0 && needed_tflops_per_gpu > limit_tflops_per_gpu);
  }
};

/// Memory of a role: its fullest rank speaks for it.
struct MemoryFigure {
  std::string role;
  std::int32_t ranks = 0;
  std::int32_t fullest_rank = 0;
  std::int64_t peak_bytes = 0;         // on the device, with allocator slack, context and NCCL
  std::int64_t allocated_bytes = 0;    // tensors and workspace
  std::int64_t reserved_bytes = 0;     // with allocator slack; 0 where nobody knows
  std::int64_t lowest_peak_bytes = 0;  // of the role's emptiest rank
  std::int64_t capacity_bytes = 0;
  std::string verdict;  // "fits", "borderline", "does_not_fit"
  std::string moment;   // what ran at the peak
  std::string phase;    // which moment of a step that is: "turn", "loss", "recompute" …
  std::vector<std::pair<std::string, std::int64_t>> categories;  // largest first

  bool fits() const { return verdict != "does_not_fit"; }
};

/// A share of the critical path. `category` is a traces::Category's text or "straggler".
struct PathShare {
  std::string category;
  std::string module;
  double share = 0;
};

/// One interval of the critical path.
struct PathSegment {
  std::string category;
  std::string module;
  std::string op;  // name of the op; for gaps, of the op that waited
  std::int32_t rank = 0;
  std::int32_t microbatch = -1;
  std::int64_t start_ps = 0;
  std::int64_t end_ps = 0;
  std::string kind = {};  // "compute", "collective", "p2p", "copy"; "wait": a gap; "slowdown": what
                          // a Compute op took longer for what was synchronised beside it
  std::uint32_t op_index = 0;  // of the rank's role
  std::uint32_t transfer = 0;  // 1 + its index; 0: the op
  /// The link that decides how long its bytes take: its kind ("nic"), and which one if it is one
  /// ("nic 0.3 -> leaf 0.3"). Traces don't know: left empty by Analysis.
  std::string link_kind = {};
  std::string link = {};
};

struct Band {
  double low_step_time_s = 0;
  double high_step_time_s = 0;
};

/// What a clock that follows the power balance would give; the figures are at the profile's clock.
struct DutyRelief {
  double clock_ratio = 0;
  double step_time_s = 0;
};

/// What producing the figures cost. Absent unless asked for: equal inputs give equal reports.
struct EngineCost {
  double wall_s = 0;
  std::int64_t peak_rss_bytes = 0;
};

/// How busy a flow network was. Absent where closed forms timed each transfer by itself.
struct NetworkUse {
  std::uint64_t num_flows = 0;         // simulated; of a folded run one of each kind
  std::uint64_t num_shared_flows = 0;  // that met others on a link which is not wide enough for all
};

/// A job that ran beside the one that figures are of.
struct OtherJobFigure {
  std::string name;
  std::string nodes;  // "8-11"
  std::int32_t num_ranks = 0;
  std::int64_t num_steps = 0;    // that were over in time
  double step_time_s = 0;        // mean of those; 0 if there were none
  double alone_step_time_s = 0;  // on the same nodes, alone
};

/// The figures of one run.
///
/// With one step the window is the whole run; with several it goes from the end of the first step
/// to the end of the last, and the step time is the mean period in it. Shares, exposed
/// communication and the critical path are those of the window.
struct Figures {
  traces::TraceKind kind = traces::TraceKind::kPredicted;
  std::string scenario_name;
  std::string scenario_hash;
  std::string program_hash;
  std::string profile_name;
  std::string profile_hash;
  std::string commit;
  std::string machine;
  std::uint64_t seed = 0;
  std::string placement;
  std::int32_t num_ranks = 0;
  std::int32_t num_steps = 1;
  std::int64_t num_microbatches = 0;
  std::vector<traces::ModuleRecord> modules;

  /// False where memory alone is predicted: everything about time and speed is unknown then.
  bool has_times = true;
  std::int64_t window_ps = 0;
  double step_time_s = 0;
  double forward_backward_s = 0;  // of the last step, see ForwardBackward; 0 without forwards
  double tokens_per_s = 0;
  double samples_per_s = 0;
  double model_tflops_per_gpu = 0;
  double mfu = 0;  // fraction of peak_tflops_per_gpu; 0 when the peak is unknown
  double hfu = 0;  // the same with recomputation counted
  double peak_tflops_per_gpu = 0;
  std::string flop_convention;
  std::optional<Band> band;
  std::optional<DutyRelief> duty_relief;
  std::optional<NetworkUse> network;
  std::optional<LinkFigures> links;  // if asked for, of a flow network
  std::vector<OtherJobFigure> other_jobs;

  TimeShares shares{};  // mean over ranks
  std::vector<RoleTime> roles;
  std::vector<ClassTime> classes;
  std::vector<ExposedComm> exposed;  // largest first, without those that are zero
  std::vector<BoundaryFigure> boundaries;
  std::vector<IslandFigure> islands;          // encoders on ranks of their own
  std::vector<MemoryFigure> memory;           // worst first
  std::vector<PathShare> critical_path;       // largest first; adds up to exactly 1
  std::vector<PathSegment> longest_segments;  // of the critical path, at most 10
  std::int64_t critical_path_ps = 0;          // equals window_ps
  std::vector<PathSegment> path;              // all of it, first to last, if Analysis is to keep it
  std::vector<std::string> assumptions;

  std::uint64_t num_ops = 0;
  bool folded = false;
  std::int32_t simulated_ranks = 0;
  std::optional<EngineCost> cost;
};

}  // namespace isthmus::reports
