#pragma once

#include <map>
#include <vector>

#include "sim/network/flow_solver.h"

namespace isthmus::tests {

/// The plainest FlowSolver: at every change all rates are found anew by filling all links at once
/// until one is full. The judge of the real one, and a stand-in where SimGrid isn't installed.
class MaxMinSolver : public sim::FlowSolver {
 public:
  void AddLink(double bytes_per_second) override { capacities_.push_back(bytes_per_second); }
  void Start(std::int64_t now_ps, std::uint32_t flow, std::span<const std::uint32_t> links,
             double bytes) override;
  std::optional<std::int64_t> NextEnd() override;
  void TakeEnded(std::int64_t now_ps, std::vector<std::uint32_t>& ended) override;

  /// Bytes per second of a flow right now.
  double RateOf(std::uint32_t flow) const { return flows_.at(flow).rate; }

 private:
  struct Flow {
    std::vector<std::uint32_t> links;
    double left = 0;  // bytes
    double rate = 0;
  };
  void AdvanceTo(double now_ps);
  void Share();
  double EndOf(const Flow& flow) const { return now_ps_ + flow.left / flow.rate * 1e12; }

  std::vector<double> capacities_;
  std::map<std::uint32_t, Flow> flows_;
  double now_ps_ = 0;
};

}  // namespace isthmus::tests
