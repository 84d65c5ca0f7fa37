#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "sim/network/flow_network.h"
#include "sim/network/link_account.h"
#include "sim/network/traffic_map.h"

namespace isthmus::sim {

/// Watches flows start and end, and sums them up by link: bytes over time, and who slowed whom.
///
/// Bytes over time: a flow's bytes, rounded to whole ones, are spread evenly from its start to its
/// end over at most kMaxBins equal bins, whose width doubles when a run outgrows them. That is
/// exact while a flow keeps its rate. Where spreading gives a bin more than its link carries, some
/// flow had another rate before or after: the excess goes to the nearest bins that have room. Sums
/// over bins stay what they were.
///
/// Who slowed whom: what a flow took longer than alone was lost on the link of its path that was
/// asked for most of its bandwidth during its life,
///
///   ∫ Σ rates alone of its flows dt / bandwidth,
///
/// and is divided among the causes of the others there as they asked: ∫ rates alone dt during that
/// life. A flow's like (an edge of the same collective, a message of the same kind) counts as any
/// other cause.
///
/// Memory: per link and bin, link and cause, flow in flight, and pair of causes that met on a link;
/// not per flow. Cost: per start and end, links of the path times causes on them. Lifetime: the
/// traffic must outlive it.
class LinkLoad {
 public:
  static constexpr std::size_t kMaxBins = 32;

  explicit LinkLoad(const Traffic& traffic);

  /// Flows as they start, and as they end, in the order of time.
  void Begin(const FlowRecord& flow, const LinkCause& cause);
  void End(const FlowRecord& flow);
  /// After the last flow of a run that ended at `end_ps`.
  LinkHistory History(std::int64_t end_ps) &&;

 private:
  __extension__ using Wide = __int128;

  /// Flows of one cause on a link.
  struct Demand {
    std::uint32_t cause = 0;
    std::int64_t rate = 0;  // bytes per second, of those in flight, each as if alone
    std::int64_t since_ps = 0;
    Wide integral = 0;  // of the rate, up to since_ps

    void GoTo(std::int64_t now_ps) {
      integral += Wide{rate} * (now_ps - since_ps);
      since_ps = now_ps;
    }
  };
  struct Flow {
    std::uint32_t cause = 0;
    std::int64_t rate = 0;
    std::vector<Wide> integrals;           // when it started: link by link, demand by demand
    std::vector<std::size_t> num_demands;  // by link, then
  };
  /// What others asked for on a link during a flow's life, by demand.
  struct Pressure {
    std::uint32_t link = 0;
    Wide of_all = 0;
    std::vector<Wide> of_others;
  };

  std::uint32_t NumberOf(const LinkCause& cause);
  Demand& DemandOf(std::uint32_t link, std::uint32_t cause);
  void Spread(const FlowRecord& flow);
  void Add(std::uint32_t link, std::size_t bin, std::int64_t bytes) {
    bytes_[link * kMaxBins + bin] += bytes;
  }
  void DoubleBins();
  /// Doubles them until the last one ends no earlier than that.
  void ReachTo(std::int64_t end_ps);
  /// Where a bin ends; the last one of all on the last instant of the clock at most.
  std::int64_t EndOf(std::size_t bin) const {
    const Wide end = Wide{bin_ps_} * static_cast<std::int64_t>(bin + 1);
    return static_cast<std::int64_t>(std::min<Wide>(end, INT64_MAX));
  }
  /// Where the flow's path was asked for most.
  Pressure Bottleneck(const FlowRecord& flow) const;
  void Blame(const FlowRecord& flow, std::int64_t lost_ps);

  const Traffic& traffic_;
  std::int64_t bin_ps_ = std::int64_t{1} << 20;
  std::vector<std::int64_t> bytes_;           // link by link, kMaxBins each
  std::vector<std::vector<Demand>> demands_;  // by link
  std::vector<Flow> flows_;                   // by number
  std::vector<LinkCause> causes_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, LinkLoss> losses_;
  std::uint64_t num_slow_flows_ = 0;
  SummedPicoseconds lost_ps_ = 0;
};

}  // namespace isthmus::sim
