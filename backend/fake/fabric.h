#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "backend/fake/channel.h"
#include "backend/fake/communicator.h"
#include "backend/fake/execute.h"
#include "backend/fake/run_clock.h"
#include "plan/program/program.h"

namespace isthmus::backend {

/// All channels and communicators of a run. Ranks look up by what their programs name; the first to
/// name one makes it.
///
/// Thread-safe. References stay good for the fabric's life. Lifetime: program and clock must
/// outlive it.
class Fabric {
 public:
  Fabric(const plan::Program& program, const RunClock& clock) : program_(program), clock_(clock) {}

  Channel& Between(base::Rank from, base::Rank to);
  /// The communicator that `rank` calls `group`, which it joins. Compute ops and collectives of one
  /// group are on different lanes and meet apart, each on its own.
  Communicator& Join(base::Rank rank, const plan::GroupRef& group, plan::OpKind meets);

  std::vector<ChannelCount> CountChannels() const;
  std::vector<GroupCount> CountGroups() const;

 private:
  /// Kind, place, what meets, members as far as they tell groups apart: equal on all members.
  using GroupKey = std::vector<std::int32_t>;
  static GroupKey KeyOf(const plan::GroupRef& group, const std::vector<base::Rank>& members,
                        plan::OpKind meets);

  const plan::Program& program_;
  const RunClock& clock_;
  mutable std::mutex mutex_;
  std::map<std::pair<base::Rank, base::Rank>, Channel> channels_;
  std::map<GroupKey, Communicator> communicators_;
};

}  // namespace isthmus::backend
