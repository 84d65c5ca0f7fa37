#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

/// The record of one run, predicted or measured: what ops there were, when they ran, what memory
/// they took. The same for sim and backend; knows neither. Stored by the schema in
/// proto/trace.proto.
///
/// Times are integer picoseconds since the start of the first step. Ranks that do the same at
/// equivalent places may be recorded once: a *lane of record* is a RankClass with `count` members,
/// and events name classes. An unfolded or measured trace has one class per rank.
///
/// A measured trace is of one step of a program, with the op ids of that program:
/// - every op that ran has an event with inner 0 (of a P2P op its posting, which takes no time);
///   each transfer that has bytes has one of its own;
/// - a rank records by its own clock: `issue` when the host came to the op with its values ready,
///   `start` when it began itself, `end` when it was over;
/// - of what several ranks do together (a collective, a Compute op with a group, a transfer) a rank
///   doesn't know when the others came. Whoever gathers the ranks' events puts them on one clock
///   and moves these starts to when the last partner came: PutOnOneClock (clock_skew.h);
/// - `node` of a class is its rank's host: ranks of one host share a clock;
/// - pieces of a block that were timed are inner events; `block` of the op gives their names;
/// - kernels that a device's profiler saw are in the trailer, each with its op.
namespace isthmus::traces {

enum class TraceKind : std::uint8_t { kPredicted, kMeasured };

/// What an interval is spent on; the figures of reports are sums over it.
enum class Category : std::uint8_t {
  kCompute,
  kTpComm,
  kCpComm,
  kEpComm,
  kPipelineComm,
  kBoundaryComm,
  kDpComm,      // gradients and parameters
  kScalarComm,  // norms, found-inf, token counts
  kCopy,        // to and from the host
  kOptimizer,   // compute of the optimizer
  kHost,        // host gaps and fixed step overhead
};
inline constexpr int kNumCategories = 11;
/// "compute", "tp_comm", …: the name used in keys and columns of every written form.
const char* ToText(Category category);
const char* ToText(TraceKind kind);  // "predicted", "measured"

/// A producer an op waits for, on the same rank: op `op`'s end, or the end of its transfer
/// `transfer - 1` when `transfer` > 0.
struct Dependency {
  std::uint32_t op = 0;
  std::uint32_t transfer = 0;
  bool operator==(const Dependency&) const = default;
};

/// One message of a P2P op.
struct TransferRecord {
  bool sends = false;
  std::uint32_t peer = 0;  // index into RankClass::peers
  std::int64_t bytes = 0;  // of the role's first rank; 0 means skipped
  bool operator==(const TransferRecord&) const = default;
};

/// How a fused Compute op's duration splits; picoseconds, sums to its end - start.
struct InnerShare {
  Category category = Category::kCompute;
  std::int64_t duration_ps = 0;
  bool operator==(const InnerShare&) const = default;
};

/// One serial step of a block of layers: kernels, a collective, or both at once.
struct PieceRecord {
  std::string name;                        // "mlp_up", …
  Category category = Category::kCompute;  // of its collective, if it has one
  bool operator==(const PieceRecord&) const = default;
};

/// One op of a role, in host order: the static half of a trace's events.
struct OpRecord {
  std::string name;  // "forward", "reduce_scatter gradients", …
  Category category = Category::kCompute;
  std::string kind;    // "compute", "collective", "p2p", "copy", "optimizer"
  std::string action;  // "forward", "all_reduce", "to_host", "step", …
  std::uint16_t module = 0;
  std::uint16_t chunk = 0;
  std::uint16_t lane = 0;
  std::int32_t microbatch = -1;
  std::int32_t step = 0;
  std::uint32_t group = 0;     // 1 + index into RoleRecord::groups; 0: none
  bool ends_backward = false;  // straggler wait is taken after it
  double model_flops = 0;      // of the role's first rank
  double hardware_flops = 0;
  std::int64_t bytes = 0;
  std::vector<Dependency> dependencies;
  std::vector<TransferRecord> transfers;
  std::vector<InnerShare> inner_shares;
  std::uint32_t block = 0;  // 1 + index into RoleRecord::blocks; 0: its pieces have no names
  bool operator==(const OpRecord&) const = default;
};

struct LaneRecord {
  std::string kind;  // "compute", "communicator", "p2p", "copy_to_host", "copy_to_device"
  std::string name;  // "compute", "llm dp_shard+cp", "p2p", …
  bool operator==(const LaneRecord&) const = default;
};

struct RoleRecord {
  std::string name;
  std::vector<LaneRecord> lanes;
  std::vector<std::string> groups;  // names of the communicators, "llm tp+cp", "vision->llm gather"
  std::vector<OpRecord> ops;
  std::vector<std::vector<PieceRecord>> blocks;  // of an expanded run, in order of their pieces
  bool operator==(const RoleRecord&) const = default;
};

/// Ranks recorded together.
struct RankClass {
  std::int32_t representative = 0;
  std::int32_t count = 1;
  std::vector<std::int32_t> members;  // all ranks, ascending
  std::uint32_t role = 0;
  std::int32_t node = 0;
  /// By RoleRecord::groups: index into Header::groups, the communicator this class calls so.
  std::vector<std::uint32_t> groups;
  /// By peer index: the class on the other side; covers all peers of the role's transfers.
  std::vector<std::uint32_t> peers;
  bool operator==(const RankClass&) const = default;
};

struct ModuleRecord {
  std::string name;
  std::string kind;
  std::string layout;  // "TP8 PP2 DP16"
  std::int32_t first_rank = 0;
  std::int32_t num_ranks = 0;
  double parameters = 0;
  bool operator==(const ModuleRecord&) const = default;
};

struct BoundaryRecord {
  std::string from;
  std::string to;
  std::string kind;                // "colocated fan-in 2", "non-colocated equal", "local"
  std::int64_t bytes_forward = 0;  // payload: materialised on a rank, per step
  std::int64_t bytes_backward = 0;
  bool operator==(const BoundaryRecord&) const = default;
};

/// How a measured run was taken. Predicted runs, and measured ones that ran once, leave it as it
/// is.
struct Measurement {
  /// Of all steps in order, the warm-up included: from the first rank's start to the last one's
  /// end.
  std::vector<std::int64_t> step_times_ps;
  std::int32_t num_warmup_steps = 0;  // the first of them, left out of every figure
  std::int32_t recorded_step = -1;    // whose events these are, into step_times_ps; -1: unknown
  std::map<std::string, std::string> software;  // "torch" -> "2.11.0", "gloo", "nccl", …
  bool operator==(const Measurement&) const = default;
};

/// Everything that is known before the first event.
struct Header {
  TraceKind kind = TraceKind::kPredicted;
  std::string scenario_name;
  std::string scenario_hash;
  std::string program_hash;
  std::string profile_name;
  std::string profile_hash;
  std::string commit;
  std::string machine;
  std::uint64_t seed = 0;
  std::string placement;  // "homogeneous", "colocated", "non_colocated"
  std::int32_t num_ranks = 0;
  std::int32_t num_steps = 1;
  std::int64_t num_microbatches = 0;
  std::int64_t tokens_per_step = 0;
  std::int64_t samples_per_step = 0;
  /// FLOPs of a step over all ranks, by convention name ("model", "hardware", "6pt", "uniform").
  std::map<std::string, double> step_flops;
  std::string flop_convention;    // which of them MFU uses and why, in words
  double peak_flops_per_gpu = 0;  // dense, at the precision of the run
  double island_flops_limit = 0;  // what an encoder's GPU can be asked for and keep up; 0: unknown
  bool expanded = false;          // inner pieces are recorded
  bool folded = false;
  std::vector<ModuleRecord> modules;
  std::vector<BoundaryRecord> boundaries;
  std::vector<RoleRecord> roles;
  std::vector<RankClass> classes;
  std::vector<std::vector<std::uint32_t>> groups;  // communicators: classes of their members
  std::vector<std::string> assumptions;
  Measurement measurement;
  bool operator==(const Header&) const = default;
};

/// One interval. `inner` 0 is the op itself; for P2P ops inner i is transfer i - 1; for Compute ops
/// inner 2k + 1 is the kernels of piece k of the expanded block and 2k + 2 its collective. `issue`
/// is when this rank was ready for it (dependencies met, lane free), `start` when it ran (partners
/// there), `end` when it was over.
struct Event {
  std::uint32_t rank_class = 0;
  std::uint32_t op = 0;
  std::uint32_t inner = 0;
  std::int64_t issue_ps = 0;
  std::int64_t start_ps = 0;
  std::int64_t end_ps = 0;
  bool operator==(const Event&) const = default;
};

/// Memory in use on a class from `time_ps` on; only changes are recorded.
struct MemoryCounter {
  std::uint32_t rank_class = 0;
  std::int64_t time_ps = 0;
  std::int64_t bytes = 0;
  bool operator==(const MemoryCounter&) const = default;
};

/// Peak of a class and what it consisted of.
struct MemoryPeak {
  std::uint32_t rank_class = 0;
  std::int64_t time_ps = 0;
  std::int64_t peak_bytes = 0;      // tensors and workspace ("allocated")
  std::int64_t reserved_bytes = 0;  // with allocator slack
  std::int64_t device_bytes = 0;    // with CUDA context and NCCL too
  std::int64_t capacity_bytes = 0;
  std::string verdict;  // "fits", "borderline", "does_not_fit"
  std::string moment;   // the op running at the peak, in words
  std::string phase;    // which moment of a step that is: "turn", "loss", "end of backward" …
  std::map<std::string, std::int64_t> categories;  // sums to device_bytes
  bool operator==(const MemoryPeak&) const = default;
};

/// A wait that no op explains: straggler or fixed step overhead of a class, taken after an op, or
/// the wait of a Compute op for the host to issue it, in front of the op.
struct ImposedWait {
  std::uint32_t rank_class = 0;
  std::uint32_t op = 0;
  std::int64_t start_ps = 0;
  std::int64_t end_ps = 0;
  bool straggler = true;  // false: host
  bool operator==(const ImposedWait&) const = default;
};

/// A Compute op that ran beside a synchronisation of gradients or parameters and took longer for
/// it: the last `duration_ps` of its interval, behind what its own shares explain.
struct Slowdown {
  std::uint32_t rank_class = 0;
  std::uint32_t op = 0;
  std::int64_t duration_ps = 0;
  bool operator==(const Slowdown&) const = default;
};

/// A kernel that ran on a class' device, and the Compute or Optimizer op that launched it. Measured
/// traces of GPUs have them, in the order of their starts by class; times are on the events' clock.
struct KernelRun {
  std::uint32_t rank_class = 0;
  std::uint32_t op = 0;
  std::uint32_t name = 0;    // index into Trailer::kernel_names
  std::uint32_t stream = 0;  // the profiler's number of it
  std::int64_t start_ps = 0;
  std::int64_t end_ps = 0;
  bool operator==(const KernelRun&) const = default;
};

/// What is known only at the end. A trailer without ops that ends at 0 is of a run that took place
/// nowhere: its memory was predicted from the program alone.
struct Trailer {
  std::int64_t end_ps = 0;
  std::vector<std::int64_t> step_end_ps;
  std::vector<MemoryPeak> memory;
  std::vector<ImposedWait> waits;
  std::vector<Slowdown> slowdowns;  // predicted; in the order of the ops' starts
  std::vector<std::string> kernel_names;
  std::vector<KernelRun> kernels;
  std::uint64_t num_ops = 0;  // executed (simulated) ops
  std::int32_t simulated_ranks = 0;
  bool folded = false;
  bool operator==(const Trailer&) const = default;
};

/// Takes a run as it happens: OnHeader once, then events and counters in any number of portions,
/// then OnTrailer once. Events of one class and lane come in order of their start; otherwise the
/// order is the producer's and deterministic. Every index names something of the header, and no
/// event ends before it starts: sinks that look things up abort otherwise. Not thread-safe.
///
/// A transfer that was skipped has no event. A run that ends without OnTrailer is incomplete.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  virtual void OnHeader(const Header& header) = 0;
  virtual void OnEvents(std::span<const Event> events) = 0;
  virtual void OnMemory(std::span<const MemoryCounter> counters) = 0;
  virtual void OnTrailer(const Trailer& trailer) = 0;
};

}  // namespace isthmus::traces
