#include "plan/build/work_pool.h"

namespace isthmus::plan {

std::uint32_t WorkPool::Get(int module_index, const BlockShape& shape, Action action) {
  const Block& block = shape.block;
  const Key key{0,
                module_index,
                static_cast<std::int64_t>(action),
                block.num_layers,
                (block.stem ? 1 : 0) + (block.projector ? 2 : 0) + (block.head ? 4 : 0) +
                    (block.head_shares_stem ? 8 : 0),
                shape.tp,
                shape.cp,
                shape.tokens,
                shape.span,
                shape.projector_in,
                shape.projector_out,
                shape.projector_tokens.value_or(-1),
                shape.needs_input_gradient ? 1 : 0,
                shape.needs_weight_gradient ? 1 : 0,
                shape.recomputed_layers.value_or(-1),
                0,
                0};
  const auto [at, is_new] = known_.try_emplace(key, static_cast<std::uint32_t>(works_.size()));
  if (is_new) works_.push_back(DescribeWork(shape, action));
  return at->second;
}

std::uint32_t WorkPool::GetOptimizer(int module_index, const ModuleSettings& settings,
                                     std::int64_t held, std::int64_t owned,
                                     OptimizerAction action) {
  const Key key{1, module_index, static_cast<std::int64_t>(action), held, owned};
  const auto [at, is_new] = known_.try_emplace(key, static_cast<std::uint32_t>(works_.size()));
  if (is_new) works_.push_back(DescribeOptimizerWork(settings, held, owned, action));
  return at->second;
}

AxisSet WorkPool::InnerAxes(std::uint32_t work) const {
  AxisSet axes;
  for (const RepeatedSegments& part : works_[work].parts) {
    for (const Segment& segment : part.segments) {
      if (segment.collective) axes = axes | segment.collective->axes;
    }
  }
  return axes;
}

}  // namespace isthmus::plan
