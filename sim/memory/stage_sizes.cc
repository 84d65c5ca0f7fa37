#include "sim/memory/stage_sizes.h"

namespace isthmus::sim {
namespace {

UnitSizes SizesOf(plan::BlockShape shape, const plan::BackwardBlock& unit) {
  shape.block = unit.block;
  shape.recomputed_layers = unit.recomputed ? unit.block.num_layers : 0;
  shape.needs_input_gradient = unit.needs_input_gradient;
  shape.needs_weight_gradient = unit.needs_weight_gradient;
  UnitSizes sizes;
  const base::Bytes context = plan::ContextBytes(shape);
  sizes.saved = unit.recomputed ? plan::CheckpointBytes(shape).value() : context.value();
  sizes.rebuilt = unit.recomputed ? context.value() : 0;
  sizes.logits = plan::LogitBytes(shape).value();
  sizes.gradient = plan::ActivationBytes(shape).value();
  if (unit.recomputed) sizes.recompute = plan::TransientOf(shape, plan::Action::kRecompute);
  sizes.backward = plan::TransientOf(shape, plan::Action::kBackward);
  return sizes;
}

std::vector<BlockSizes> SizesOf(plan::BlockShape shape,
                                const std::vector<plan::ForwardBlock>& blocks) {
  std::vector<BlockSizes> sizes;
  for (const plan::ForwardBlock& block : blocks) {
    shape.block = block.block;
    BlockSizes& fresh = sizes.emplace_back();
    fresh.output = block.block.head ? 0 : plan::ActivationBytes(shape).value();
    fresh.forward = plan::TransientOf(shape, plan::Action::kForward);
    for (const plan::BackwardBlock& unit : block.backward) {
      fresh.units.push_back(SizesOf(shape, unit));
    }
  }
  return sizes;
}

}  // namespace

ChunkSizes SizesOf(plan::BlockShape shape, const plan::StagePlan& plan) {
  ChunkSizes chunk{.plain = SizesOf(shape, plan.plain), .bucketed = SizesOf(shape, plan.bucketed)};
  shape.block = {.num_layers = 1};
  chunk.input = plan::ActivationBytes(shape).value();
  shape.block = plan.plain.back().block;
  chunk.output = plan::ActivationBytes(shape).value();
  return chunk;
}

}  // namespace isthmus::sim
