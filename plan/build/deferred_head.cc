#include <algorithm>

#include "plan/build/module_emitter.h"

// The LM head's weight gradients that wait for the cool-down, when the last stage idles.
namespace isthmus::plan {

bool ModuleEmitter::Defers(const BackwardBlock& block, const Turn& turn) const {
  return block.block.head && block.needs_weight_gradient &&
         turn.microbatch < job_.schedule.defer_embedding_wgrad;
}

bool ModuleEmitter::WaitsForDeferred(std::size_t bucket) const {
  return std::any_of(deferred_.begin(), deferred_.end(), [&](const Deferred& deferred) {
    const std::size_t first = chunks_[static_cast<std::size_t>(deferred.turn.chunk)].first_bucket;
    const std::vector<int>& held = deferred.block->parameters;
    return std::any_of(held.begin(), held.end(), [&](int local) {
      return first + static_cast<std::size_t>(local) == bucket;
    });
  });
}

ValueId ModuleEmitter::AddLogitGradient(const BlockShape& shape, const Turn& turn) {
  const SizeId size = writer_.Size(Key(kSlotLogitGradients), LogitGradientBytes(shape));
  return writer_.AddValue(
      ActivationStorage(ValueKind::kGradient, MemoryCategory::kLogits, turn, size));
}

std::uint32_t ModuleEmitter::DeferHead(StepState& state, const BackwardBlock& block,
                                       const Turn& turn, std::size_t index,
                                       std::vector<ValueId> consumed,
                                       std::vector<ValueId> produced) {
  const BlockShape shape = ShapeOf(turn, block);
  Deferred& deferred = deferred_.emplace_back();
  deferred.turn = turn;
  deferred.block = &block;
  deferred.index = index;
  deferred.saved = context_of(turn).saved[index];
  consumed.insert(consumed.end(), deferred.saved.begin(), deferred.saved.end());
  const std::vector<ValueId> parameters = Parameters(turn, block.parameters);
  consumed.insert(consumed.end(), parameters.begin(), parameters.end());
  const ValueId buffer = *context_of(turn).logit_gradient;
  consumed.push_back(buffer);
  deferred.saved.push_back(writer_.NextVersion(buffer));
  produced.push_back(deferred.saved.back());
  Op op = ComputeOp(state, shape, Action::kBackwardInput, turn, index);
  op.size = writer_.WorkSlot(Key(turn, kSlotBackwardInput, 0, 0),
                             works_.Get(at_.module, shape, Action::kBackwardInput));
  op.span = writer_.Span(Key(kSlotBackwardInput), SpanOf(block));
  return writer_.Add(op, consumed, produced);
}

void ModuleEmitter::FinishDeferred(StepState& state) {
  for (const Deferred& deferred : deferred_) {
    const BlockShape shape = ShapeOf(deferred.turn, *deferred.block);
    std::vector<ValueId> consumed = deferred.saved;
    std::vector<ValueId> produced;
    Accumulate(*deferred.block, deferred.turn, consumed, produced);
    Op op = ComputeOp(state, shape, Action::kBackwardWeight, deferred.turn, deferred.index);
    op.size = writer_.WorkSlot(Key(deferred.turn, kSlotBackwardWeight, 0, 0),
                               works_.Get(at_.module, shape, Action::kBackwardWeight));
    op.span = writer_.Span(Key(kSlotBackwardWeight), SpanOf(*deferred.block));
    state.last_compute = writer_.Add(op, consumed, produced);
  }
  deferred_.clear();
}

}  // namespace isthmus::plan
