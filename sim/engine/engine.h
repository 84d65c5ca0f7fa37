#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/sim_time.h"
#include "sim/cost/jitter_model.h"
#include "sim/engine/event_heap.h"
#include "sim/engine/lowered.h"
#include "sim/engine/program_traffic.h"
#include "sim/engine/shared_device.h"
#include "sim/network/flow_network.h"
#include "traces/trace.h"

namespace isthmus::sim {

/// Ranks that compute on devices they share (cpu-host, several ranks on one GPU).
struct DeviceSharing {
  std::vector<int> cores_of_device;
  std::vector<double> speeds;        // of all devices: SharedDevice's
  std::vector<int> device_of_class;  // by class; empty: every rank has a device of its own
};

struct EngineOptions {
  bool expanded = false;
  /// What messages, collectives and copies share, over Lowered::traffic; must outlive the engine.
  /// Null: each takes what it takes alone.
  FlowNetwork* network = nullptr;
  /// Its number among those on the network, for tags of flows.
  std::uint8_t job = 0;
  /// When it begins.
  std::int64_t start_ps = 0;
  /// Share of a rank's busy time that it waits for stragglers, once per step: slope · log2(n / 8).
  /// Taken after its last backward; what goes to other stages and modules does not wait.
  double straggler_share = 0;
  /// Share of its SMs that a rank's compute does without while gradients or parameters are
  /// synchronised beside it. Not on shared devices.
  double sync_contention = 0;
  /// Fixed host work behind the last op of a step.
  std::int64_t step_overhead_ps = 0;
  /// How ops vary at random; must outlive the engine. Null: not at all. Needs every rank to be a
  /// class of its own, with a device of its own.
  const JitterModel* jitter = nullptr;
  DeviceSharing sharing;
};

/// When every op of a class ran: what the ledger and the figures of a run are made of.
struct ClassTimes {
  std::vector<std::int64_t> start_ps;         // by op
  std::vector<std::int64_t> end_ps;           // by op; P2P: when posted
  std::vector<std::int64_t> transfer_end_ps;  // by transfer; -1: empty
};

struct EngineResult {
  bool deadlock = false;
  std::uint32_t blocked_class = 0;  // on deadlock: a class and its first op that never ends
  std::uint32_t blocked_op = 0;
  std::int64_t end_ps = 0;
  std::uint64_t num_ops = 0;
  std::vector<std::int64_t> step_end_ps;
  std::vector<traces::ImposedWait> waits;
  std::vector<traces::Slowdown> slowdowns;
  std::vector<ClassTimes> times;  // by class
};

/// Takes events in portions: ops and transfers in the order of their ends, pieces of expanded
/// blocks when they start.
using EventPort = std::function<void(std::span<const traces::Event>)>;

/// Runs a lowered program in simulated time.
///
/// Ops start as plan::Op says. Collectives and matched Compute start when the last class of their
/// communicator is ready and end together, after the longest of their members' durations; of
/// matched Compute piece by piece, since inner collectives hold its members together. Transfers are
/// rendezvous: they start when both sides have posted. Durations are fixed when an op starts,
/// except on shared devices and on a flow network.
///
/// On a shared device work progresses at a rate and ends are re-timed. Communication there is first
/// a wait that takes no core, then its core time as a job of every member, beside whatever else
/// runs. Matched Compute goes from one inner collective to the next: a member that is early waits
/// and takes nothing.
///
/// With a flow network, messages, collectives and copies are flows on it: alone they take as long
/// as their closed form, of which the part that no byte explains comes first, as a delay.
///
/// A host per rank issues the ops in list order, as far ahead of the device as it gets; it waits
/// for the end of an op with kBlocksHost and of a step. No op but Compute starts before it is
/// issued; a Compute op starts once its first kernels are, and no earlier than lets it end with the
/// last one's issue, so that the idle time of a host-bound op lies in front of it.
///
/// With jitter an op takes its rank's own varied time: of a collective or matched Compute the
/// slowest member's counts, of a transfer the slower side's. Pieces of a block are stretched alike.
///
/// A Compute op beside a gradient or parameter synchronisation is longer by sync_contention of the
/// time they share: of what was ready to be synchronised when the op starts, its own duration at
/// most. Ops are cut where buckets become ready, so nothing joins in the middle of one.
///
/// Deterministic: a function of its inputs; equal times are taken in the order they were scheduled.
/// One object runs once. Not thread-safe. Cost: one heap operation per op, matched group and
/// transfer; about 20 bytes an op in memory.
class Engine {
 public:
  Engine(const Lowered& lowered, EngineOptions options, EventPort port);
  /// Without a network, all of it.
  EngineResult Run();

  // Step by step, for who runs jobs on a network (JobMix). First Start(); what happens next is the
  // earlier of NextEvent(), which HandleNext() does, and the network's, of whose ends this job's go
  // to OnFlowed(), one after the other, and then Drain(). Finish() when it is over.
  void Start();
  bool is_over() const { return heap_.empty() && num_flowing_ == 0; }
  std::int64_t NextEvent() const { return heap_.empty() ? FlowNetwork::kNever : heap_.next_ps(); }
  void HandleNext();
  void OnFlowed(const FlowTag& tag, std::int64_t now);
  /// Lets what has become ready go on.
  void Drain(std::int64_t now);
  EngineResult Finish();
  /// The class, op and inner number of what is on the network under this tag.
  std::array<std::uint32_t, 3> OwnerOf(const FlowTag& tag) const;

 private:
  enum class What : std::uint8_t {
    kOpEnd,
    kGroupEnd,
    kTransferEnd,
    kRelease,
    kIssued,
    kMeetingIssued,
    kPiece,
    kGroupPiece,
    kDevice,
    kGroupWaited,
    kTransferWaited
  };
  struct Payload {
    What what = What::kOpEnd;
    std::uint32_t a = 0;  // class, or meeting, or device
    std::uint32_t b = 0;  // op, transfer, or position in the work
    std::uint32_t c = 0;  // kPiece: op
  };
  /// What runs on a shared device: an op of a class alone, one member's part of a meeting, or a
  /// message.
  struct Job {
    enum class Kind : std::uint8_t { kAlone, kMember, kMessage };
    Kind kind = Kind::kAlone;
    std::uint32_t a = 0;  // class, or meeting
    std::uint32_t b = 0;  // op, or transfer
  };
  /// A stretch of matched work on a shared device: kernels, then the inner collective behind them.
  struct Phase {
    std::int64_t compute_ps = 0;
    std::int64_t wait_ps = 0;  // of the collective, no core needed
    std::int64_t core_ps = 0;  // of the collective
  };
  /// A block on its way through its pieces, each stretched as the whole is.
  struct BlockPace {
    const WorkCost* work = nullptr;
    std::int64_t duration_ps = 0;  // of the whole; work->total_ps unless it varies
    std::int64_t behind_ps = 0;    // of work->total_ps
  };
  /// Members of a communicator that have arrived, for one kind of op (its collectives, its
  /// Compute).
  struct Meeting {
    std::uint32_t num_arrived = 0;
    std::int64_t start_ps = 0;
    std::int64_t duration_ps = 0;
    std::int64_t extra_ps = 0;      // Compute: of synchronisations beside it
    std::uint32_t num_running = 0;  // shared devices: members whose job isn't over
    std::uint32_t phase = 0;        // shared devices
    bool in_collective = false;     // shared devices: of the phase, the kernels are over
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ops;  // (class, op), in order of arrival
    std::vector<std::int64_t> issue_ps;
    std::vector<BlockPace> paces;  // expanded Compute
  };
  struct ClassState {
    std::vector<std::uint16_t>
        pending;                   // by op: prerequisites left; P2P once posted: transfers left
    std::vector<bool> posted;      // by op
    std::vector<bool> started;     // by transfer
    std::int64_t busy_ps = 0;      // compute of the current step
    std::int64_t host_ps = 0;      // when the host would have begun, had it never waited since
    std::int64_t sync_end_ps = 0;  // when all that is ready to be synchronised will be
    std::int64_t extra_ps = 0;     // of the Compute op that runs alone, in front of its end
    BlockPace pace;                // expanded: of the Compute op that runs alone
    std::uint64_t num_done = 0;
  };

  void Prime();
  void Happen(const Payload& what, std::int64_t now);
  /// Whether the op's traffic goes over the network, which then ends it.
  bool FlowsCollective(std::uint32_t at, std::int64_t now);
  bool FlowsCopy(std::uint32_t cls, std::uint32_t index, std::int64_t now);
  bool FlowsMessage(std::uint32_t cls, std::uint32_t transfer, std::int64_t now);
  void Flow(std::uint32_t shape, std::int64_t bytes, std::int64_t alone_ps,
            std::int64_t timed_bytes, plan::Purpose purpose, FlowTag tag, std::int64_t now);
  FlowTag Tag(What what, std::uint32_t a, std::uint32_t b = 0) const {
    return {static_cast<std::uint8_t>(what), options_.job, a, b};
  }
  void OnReady(std::uint32_t cls, std::uint32_t op, std::int64_t now);
  void OnIssued(std::uint32_t cls, std::uint32_t op, std::int64_t now);
  /// When the host lets an op start, were it ready at once; matched Compute, when its issue begins.
  std::int64_t IssueOf(std::uint32_t cls, std::uint32_t op) const;
  /// Whether the members' Compute can't start yet since it would end before its last kernels are
  /// issued; it is started again when it can.
  bool HoldForIssue(std::uint32_t at, std::int64_t now);
  /// The host goes on behind `op` at `now`, not before.
  void HostWaited(std::uint32_t cls, std::uint32_t op, std::int64_t now);
  /// How much longer a Compute op that starts now takes for synchronisations beside it.
  std::int64_t SyncSlowdown(std::uint32_t cls, std::uint32_t op, std::int64_t now) const;
  /// How long an op takes by itself, or a message.
  std::int64_t DurationOf(std::uint32_t cls, std::uint32_t op) const;
  std::int64_t TransferDurationOf(std::uint32_t cls, std::uint32_t transfer) const;
  /// The different works of matched Compute, each at the pace of the slowest member that has it.
  std::vector<BlockPace> PacesOf(const Meeting& meeting) const;
  /// How long the piece at this position takes; the paces go on behind it.
  static std::int64_t NextPiece(std::span<BlockPace> paces, std::uint32_t position);
  static std::int64_t Stretched(std::int64_t alone_ps, const BlockPace& pace);
  /// Lets something happen after a duration.
  void Push(std::int64_t now, std::int64_t duration_ps, const Payload& what) {
    heap_.Push(After(now, duration_ps, what), what);
  }
  /// Throws base::Error past the end of the clock.
  std::int64_t After(std::int64_t start_ps, std::int64_t duration_ps, const Payload& what) const {
    return base::Later(start_ps, duration_ps, [&] { return NameOf(what); });
  }
  /// Whose affair an event is, for people.
  std::string NameOf(const Payload& what) const;
  std::string NameOfOp(std::uint32_t cls, std::uint32_t op) const;
  /// When the host has issued an op.
  std::int64_t IssuedOf(std::uint32_t cls, std::uint32_t op) const {
    return After(classes_[cls].host_ps, variant(cls).issued_ps[op],
                 {.what = What::kOpEnd, .a = cls, .b = op});
  }
  void Arrive(std::uint32_t cls, std::uint32_t op, std::int64_t now);
  void StartMeeting(std::uint32_t at, std::int64_t now);
  /// How long matched Compute takes: its inner collectives hold the members together, so the
  /// slowest sets the pace of every piece.
  std::int64_t PacedDuration(const Meeting& meeting) const;
  void EndMeeting(std::uint32_t at, std::int64_t now);
  void StartAlone(std::uint32_t cls, std::uint32_t op, std::int64_t now);
  void Post(std::uint32_t cls, std::uint32_t op, std::int64_t now);
  void StartTransfers(std::uint32_t cls, std::uint32_t op, std::int64_t now);
  void MaybeStart(std::uint32_t cls, std::uint32_t transfer, std::int64_t now);
  /// Of one message, on the cores of a shared host.
  std::int64_t CoreTimeOf(std::uint32_t cls, std::uint32_t transfer) const;
  void EndTransfer(std::uint32_t cls, std::uint32_t transfer, std::int64_t now);
  void Complete(std::uint32_t cls, std::uint32_t op, std::int64_t issue, std::int64_t start,
                std::int64_t now);
  void Release(std::uint32_t cls, std::uint32_t op, std::int64_t now);
  void ReleaseHeldBack(std::uint32_t cls, std::uint32_t op, std::int64_t now);
  void ReleaseList(std::uint32_t cls, std::span<const std::uint32_t> ops);
  void Piece(std::uint32_t cls, std::uint32_t op, std::uint32_t position, std::int64_t now);
  void GroupPiece(std::uint32_t at, std::uint32_t position, std::int64_t now);
  void RecordPiece(std::uint32_t cls, std::uint32_t op, std::uint32_t position,
                   std::int64_t duration, std::int64_t start);
  void StartJob(std::uint32_t cls, Job job, std::int64_t work, Pace pace, std::int64_t now);
  /// The phases of what a member does in a meeting.
  const std::vector<Phase>& PhasesOf(std::uint32_t cls, std::uint32_t op);
  void StartPhase(std::uint32_t at, std::int64_t now);
  void StartPhaseCollective(std::uint32_t at, std::int64_t now);
  void StartCoreTime(std::uint32_t at, std::int64_t now);
  void OnMemberOver(std::uint32_t at, std::int64_t now);
  void OnDevice(std::uint32_t device, std::uint32_t epoch, std::int64_t now);
  void ArmDevice(std::uint32_t device);
  void Record(const traces::Event& event);
  void RecordSlowdown(std::uint32_t cls, std::uint32_t op, std::int64_t duration_ps) {
    if (duration_ps > 0) result_.slowdowns.push_back({cls, op, duration_ps});
  }
  void Flush();
  void ExplainDeadlock();
  /// Whether the op meets other ranks' ops, to start and end with them.
  bool Meets(std::uint32_t cls, const plan::Op& op) const;
  std::uint32_t MeetingOf(std::uint32_t cls, const plan::Op& op) const;
  bool shares(std::uint32_t cls) const {
    return !options_.sharing.device_of_class.empty() && device_of(cls) >= 0;
  }
  int device_of(std::uint32_t cls) const { return options_.sharing.device_of_class[cls]; }
  // Whether an op carries activations or gradients to other stages or modules.
  bool is_passed_on(std::uint32_t cls, std::uint32_t op) const {
    const plan::Purpose purpose = variant(cls).ops->ops[op].purpose;
    return purpose == plan::Purpose::kPipeline || purpose == plan::Purpose::kBoundary;
  }
  const Variant& variant(std::uint32_t cls) const {
    return lowered_.variants[lowered_.classes[cls].variant];
  }

  const Lowered& lowered_;
  EngineOptions options_;
  EventPort port_;
  EventHeap<Payload> heap_;
  std::vector<ClassState> classes_;
  std::vector<Meeting> meetings_;  // two per communicator: collectives, Compute
  std::vector<SharedDevice> devices_;
  std::map<std::uint32_t, Job> jobs_;  // on shared devices
  std::uint32_t next_job_ = 0;
  std::map<const WorkCost*, std::vector<Phase>> phases_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Phase>> collective_phases_;
  std::uint64_t num_flowing_ = 0;                               // on the network
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ready_;  // (class, op), first in first out
  std::vector<traces::Event> events_;
  EngineResult result_;
};

}  // namespace isthmus::sim
