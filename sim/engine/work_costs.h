#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "plan/program/program.h"
#include "sim/cost/overlap.h"
#include "sim/engine/lowered.h"
#include "topology/locality.h"

namespace isthmus::sim {

/// Localities of the groups that inner collectives of one module run over, by axis.
struct InnerLocalities {
  std::uint32_t tp = 0;  // indices into WorkCosts' localities
  std::uint32_t cp = 0;
  std::uint32_t ep = 0;
  friend auto operator<=>(const InnerLocalities&, const InnerLocalities&) = default;
};

/// Turns works into integer picoseconds, once per distinct work, place and speed.
///
/// A segment gets one duration, rounded once; a block's is the sum, so fused and expanded runs
/// agree. Lifetime: the segment model must outlive it; the costs live in the owner's list.
class WorkCosts {
 public:
  /// `op_issue`: what a host that runs its ops itself needs for one, in front of its work.
  WorkCosts(const SegmentModel& segments, base::Seconds op_issue,
            std::vector<std::unique_ptr<WorkCost>>& owner)
      : segments_(segments), op_issue_(op_issue), owner_(owner) {}

  /// Index of a locality; equal ones share it.
  std::uint32_t Intern(const topology::GroupLocality& locality);
  const topology::GroupLocality& locality(std::uint32_t index) const { return localities_[index]; }

  /// `speed` is the device's share of full speed (slow GPUs: < 1).
  const WorkCost* Cost(const plan::Work& work, std::uint32_t work_index,
                       const InnerLocalities& places, traces::Category category, double speed);

 private:
  struct Key {
    std::uint32_t work;
    InnerLocalities places;
    double speed;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  PieceCost CostOf(const plan::Segment& segment, const InnerLocalities& places, double speed,
                   std::array<std::int64_t, traces::kNumCategories>& shares,
                   traces::Category category) const;

  const SegmentModel& segments_;
  base::Seconds op_issue_;
  std::vector<std::unique_ptr<WorkCost>>& owner_;
  std::vector<topology::GroupLocality> localities_;
  std::map<topology::GroupLocality, std::uint32_t> known_localities_;
  std::map<Key, const WorkCost*> known_;
};

}  // namespace isthmus::sim
