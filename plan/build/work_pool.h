#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "plan/model/layers.h"
#include "plan/program/op.h"

namespace isthmus::plan {

/// The distinct works of a program: equal shapes are described once.
class WorkPool {
 public:
  /// Index of the work of `action` on `shape`; `module_index` tells modules apart.
  std::uint32_t Get(int module_index, const BlockShape& shape, Action action);
  std::uint32_t GetOptimizer(int module_index, const ModuleSettings& settings, std::int64_t held,
                             std::int64_t owned, OptimizerAction action);
  /// Axes of the inner collectives of a work; its ops are matched over them.
  AxisSet InnerAxes(std::uint32_t work) const;
  std::vector<Work> Take() { return std::move(works_); }

 private:
  using Key = std::array<std::int64_t, 17>;
  std::map<Key, std::uint32_t> known_;
  std::vector<Work> works_;
};

}  // namespace isthmus::plan
