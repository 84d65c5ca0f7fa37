#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "plan/program/op.h"
#include "sim/engine/event_heap.h"
#include "sim/network/flow_solver.h"
#include "sim/network/link_account.h"
#include "sim/network/traffic_map.h"

namespace isthmus::sim {

/// Whose traffic it is: of which job, else its engine's affair.
struct FlowTag {
  std::uint8_t what = 0;
  std::uint8_t job = 0;  // of those that share the network
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  bool operator==(const FlowTag&) const = default;
};

/// One flow that starts or is over.
struct FlowRecord {
  std::uint32_t number = 0;  // its own until it is over
  FlowTag tag;
  plan::Purpose purpose = plan::Purpose::kModel;
  std::uint32_t path = 0;  // of the traffic
  double bytes = 0;
  std::int64_t start_ps = 0;
  std::int64_t end_ps = 0;    // where it starts: if it stays alone
  std::int64_t alone_ps = 0;  // how long it would have taken with its links to itself
};

/// All traffic that is in flight, in whole picoseconds.
///
/// A message or collective is a bundle of flows, which start together after a delay and is over
/// when its last flow is. A flow alone on its links runs at the rate of its slowest one, and its
/// end is exact. Max-min sharing can take something from it only on a link whose flows, each at the
/// rate it would have alone, come to more than the link carries: were it slower elsewhere, its
/// bottleneck link would be full, with rates that add up to less than the link's. So a flow stays
/// out of the solver until one of its links is in such demand; then it goes on there with what is
/// left of it. Where nothing is in demand the solver isn't even loaded.
///
/// Ends of one instant come in the order in which their bundles were started. Not thread-safe.
/// Cost: 0.1 µs a flow out of the solver, 1 to 6 in it with 64 to 1,024 at once (bench/network.cc).
/// Lifetime: the traffic must outlive it.
class FlowNetwork {
 public:
  using MakeSolver = std::function<std::unique_ptr<FlowSolver>()>;
  using RecordPort = std::function<void(const FlowRecord&)>;

  FlowNetwork(const Traffic& traffic, MakeSolver make_solver, RecordPort on_end = nullptr,
              RecordPort on_start = nullptr);

  /// How long a message or collective of this shape takes, if it is alone.
  std::int64_t WirePs(std::uint32_t shape, double bytes) const;
  /// Starts a bundle of `bytes` · share at now + delay. Times of calls must not decrease.
  void Start(std::int64_t now_ps, std::int64_t delay_ps, std::uint32_t shape, double bytes,
             plan::Purpose purpose, FlowTag tag);
  /// When something happens next; kNever if nothing is in flight.
  std::int64_t NextEvent() const { return next_ps_; }
  /// Goes on to `now_ps`, which NextEvent() must not precede; the bundles that are over by then.
  /// Valid until the next call.
  std::span<const FlowTag> Advance(std::int64_t now_ps);

  /// By Traffic::links.
  const std::vector<LinkAccount>& accounts() const { return accounts_; }
  std::uint64_t num_flows() const { return num_flows_; }
  /// Flows that had to share a link with others.
  std::uint64_t num_shared_flows() const { return num_shared_flows_; }

  static constexpr std::int64_t kNever = INT64_MAX;

 private:
  struct Flow {
    std::uint32_t bundle = 0;
    std::uint32_t path = 0;
    double bytes = 0;
    std::int64_t start_ps = 0;
    std::int64_t end_ps = 0;  // alone
    bool is_active = false;
    bool is_shared = false;                // in the solver
    std::vector<std::uint32_t> positions;  // in the lists of its path's contended links
  };
  struct Bundle {
    FlowTag tag;
    plan::Purpose purpose = plan::Purpose::kModel;
    std::uint32_t shape = 0;
    std::uint32_t num_left = 0;  // flows
    std::uint32_t epoch = 0;     // changes with every use of the place
    std::uint64_t sequence = 0;
    double bytes = 0;
    std::vector<std::uint32_t> flows;
  };
  struct LinkUse {
    std::int64_t capacity = 0;  // bytes per second
    std::int64_t demand = 0;    // sum of its flows' rates, had each its links to itself
    std::vector<std::pair<std::uint32_t, std::uint32_t>> flows;  // and the link's place in the path
    std::uint32_t number_in_solver = plan::kNone32;
    std::uint32_t num_on_it = 0;
    std::int64_t busy_since_ps = 0;
  };
  struct BundleEvent {
    std::uint32_t bundle = 0;
    std::uint32_t epoch = 0;
  };

  void Begin(std::uint32_t number, std::int64_t now_ps);
  void BeginFlow(std::uint32_t number, std::int64_t now_ps);
  /// Whether a link of the path is in more demand than it can serve.
  bool IsShort(const TrafficPath& path) const;
  void Share(std::uint32_t number, std::int64_t now_ps);
  void EndFlow(std::uint32_t number, std::int64_t now_ps);
  void EndBundle(std::uint32_t number);
  FlowRecord RecordOf(std::uint32_t number, std::int64_t end_ps) const;
  void TakeFromSolver(std::int64_t now_ps);
  std::uint32_t NewFlow();
  std::uint32_t NewBundle();
  void FindNext();

  const Traffic& traffic_;
  MakeSolver make_solver_;
  RecordPort on_end_;
  RecordPort on_start_;
  std::unique_ptr<FlowSolver> solver_;
  std::uint32_t num_links_in_solver_ = 0;
  std::int64_t solver_next_ps_ = kNever;
  bool solver_changed_ = false;
  std::int64_t next_ps_ = kNever;
  std::vector<LinkUse> links_;
  std::vector<LinkAccount> accounts_;
  std::vector<std::int64_t> demand_of_path_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_flows_;
  std::vector<Bundle> bundles_;
  std::vector<std::uint32_t> free_bundles_;
  EventHeap<BundleEvent> begins_;
  EventHeap<BundleEvent> ends_;  // of flows outside the solver
  std::uint64_t next_sequence_ = 0;
  std::uint64_t num_flows_ = 0;
  std::uint64_t num_shared_flows_ = 0;
  std::vector<std::pair<std::uint64_t, FlowTag>> over_;
  std::vector<FlowTag> tags_;
  std::vector<std::uint32_t> taken_;
  std::vector<std::uint32_t> solver_route_;
};

}  // namespace isthmus::sim
