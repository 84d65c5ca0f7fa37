#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/engine/job_mix.h"
#include "sim/engine/lowered.h"
#include "sim/network/flow_network.h"
#include "sim/network/link_load.h"
#include "sim/simulate.h"

namespace isthmus::sim {

/// Watches the flows of a run: hands those of the first job on (SimOptions::on_flow), and sums all
/// of them up by link (SimOptions::record_links).
///
/// Use: make the network with its ports, the mix with the network, then Know() the mix. Lifetime:
/// all that it is given must outlive it, and it the network.
class FlowWatch {
 public:
  FlowWatch(const Traffic& traffic, std::vector<const Lowered*> jobs, const SimOptions& options);

  /// Null where nobody wants to know.
  FlowNetwork::RecordPort StartPort();
  FlowNetwork::RecordPort EndPort();
  void Know(const JobMix& mix) { mix_ = &mix; }

  /// After a run that ended at `end_ps`, if it was asked for.
  std::optional<LinkHistory> History(std::int64_t end_ps);

 private:
  bool tells() const { return on_flow_ && !jobs_.front()->folded; }

  const Traffic& traffic_;
  std::vector<const Lowered*> jobs_;
  const LinkFlowPort& on_flow_;
  std::optional<LinkLoad> load_;
  const JobMix* mix_ = nullptr;
};

}  // namespace isthmus::sim
