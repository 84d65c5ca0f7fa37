#include "plan/build/module_emitter.h"

#include <algorithm>

namespace isthmus::plan {

ModuleEmitter::ModuleEmitter(RoleWriter& writer, WorkPool& works, const Job& job,
                             const StageOnRank& at)
    : writer_(writer),
      works_(works),
      job_(job),
      at_(at),
      module_(job.modules[static_cast<std::size_t>(at.module)]) {
  for (const StagePlan* plan : at.chunks) {
    Chunk& chunk = chunks_.emplace_back();
    chunk.plan = plan;
    chunk.first_bucket = buckets_.size();
    chunk.contexts.resize(static_cast<std::size_t>(at.num_microbatches));
    for (const Bucket& bucket : plan->buckets) buckets_.push_back(&bucket);
    trained_parameters_ += plan->trained_parameters;
    frozen_parameters_ += plan->frozen_parameters;
    replicated_parameters_ += plan->replicated_parameters;
  }
  AddPersistentStorage();
}

bool ModuleEmitter::has_backward(int chunk) const {
  if (module_.settings.backward == BackwardMode::kAbsent) return false;
  const std::vector<ForwardBlock>& blocks = chunks_[static_cast<std::size_t>(chunk)].plan->plain;
  return std::any_of(blocks.begin(), blocks.end(),
                     [](const ForwardBlock& block) { return block.backward.back().active; });
}

bool ModuleEmitter::has_backward_behind() const {
  return module_.settings.backward != BackwardMode::kAbsent;
}

base::Bytes ModuleEmitter::input_bytes(const Turn& turn) const {
  return ActivationBytes(ShapeOf(turn, Block{.num_layers = 1}));
}

base::Bytes ModuleEmitter::output_bytes(const Turn& turn) const {
  const StagePlan& plan = *chunks_[static_cast<std::size_t>(turn.chunk)].plan;
  return ActivationBytes(ShapeOf(turn, plan.plain.back().block));
}

const std::vector<ForwardBlock>& ModuleEmitter::BlocksOf(const Turn& turn) const {
  const bool first = turn.microbatch == 0 && job_.optimizer.overlap_param_gather;
  const bool last =
      turn.microbatch + 1 == at_.num_microbatches && job_.optimizer.overlap_grad_reduce;
  const StagePlan& plan = *chunks_[static_cast<std::size_t>(turn.chunk)].plan;
  return first || last ? plan.bucketed : plan.plain;
}

BlockShape ModuleEmitter::ShapeOf(const Turn& turn, const Block& block) const {
  BlockShape shape = shape_at(turn);
  shape.block = block;
  return shape;
}

BlockShape ModuleEmitter::ShapeOf(const Turn& turn, const BackwardBlock& backward) const {
  BlockShape shape = ShapeOf(turn, backward.block);
  shape.recomputed_layers = backward.recomputed ? backward.block.num_layers : 0;
  shape.needs_input_gradient = backward.needs_input_gradient;
  shape.needs_weight_gradient = backward.needs_weight_gradient;
  return shape;
}

BlockShape ModuleEmitter::ShapeOfRank() const {
  Block rank = chunks_.front().plan->whole;
  for (std::size_t chunk = 1; chunk < chunks_.size(); ++chunk) {
    const Block& whole = chunks_[chunk].plan->whole;
    rank.num_layers += whole.num_layers;
    rank.projector = rank.projector || whole.projector;
    rank.head = rank.head || whole.head;
  }
  return ShapeOf({.microbatch = 0}, rank);
}

SlotKey ModuleEmitter::Key(std::uint16_t what, std::size_t block, std::uint32_t extra) const {
  return {.what = what,
          .module = static_cast<std::uint16_t>(at_.module),
          .chunk = 0,
          .block = static_cast<std::uint16_t>(block),
          .extra = extra};
}

SlotKey ModuleEmitter::Key(const Turn& turn, std::uint16_t what, std::size_t block,
                           std::uint32_t extra) const {
  SlotKey key = Key(what, block, extra);
  key.microbatch = size_microbatch(turn);
  return key;
}

namespace {

/// Tells the blocks of a stage apart by what they span, whichever way the stage was cut.
std::uint32_t Span(const Block& block, int first_layer) {
  const std::uint32_t ends =
      (block.stem ? 1U : 0U) + (block.projector ? 2U : 0U) + (block.head ? 4U : 0U);
  return (static_cast<std::uint32_t>(first_layer) << 3U) + ends;
}

}  // namespace

Op ModuleEmitter::ComputeOp(const StepState& state, const BlockShape& shape, Action action,
                            const Turn& turn, std::size_t block) {
  const std::uint32_t work = works_.Get(at_.module, shape, action);
  Op op{.kind = OpKind::kCompute, .detail = static_cast<std::uint8_t>(action)};
  op.lane = writer_.ComputeLane();
  op.module = static_cast<std::uint16_t>(at_.module);
  op.microbatch = at_.first_microbatch < 0 ? -1 : turn.microbatch;
  op.chunk = static_cast<std::uint16_t>(turn.chunk);
  op.step = static_cast<std::int16_t>(state.step);
  op.block = static_cast<std::uint16_t>(block);
  const AxisSet inner = works_.InnerAxes(work);
  if (!inner.empty()) op.group = AxesGroup(inner);
  return op;
}

std::uint32_t ModuleEmitter::AxesGroup(AxisSet axes) {
  return writer_.Group({.kind = GroupRef::Kind::kAxes,
                        .module = static_cast<std::uint16_t>(at_.module),
                        .axes = axes});
}

Storage ModuleEmitter::ActivationStorage(ValueKind kind, MemoryCategory category, const Turn& turn,
                                         SizeId size) const {
  return {.kind = kind,
          .category = category,
          .module = static_cast<std::uint16_t>(at_.module),
          .chunk = static_cast<std::uint16_t>(turn.chunk),
          .microbatch = at_.first_microbatch < 0 ? -1 : turn.microbatch,
          .size = size};
}

std::vector<ValueId> ModuleEmitter::Parameters(const Turn& turn,
                                               const std::vector<int>& storages) const {
  const Chunk& chunk = chunks_[static_cast<std::size_t>(turn.chunk)];
  std::vector<ValueId> values;
  for (const int storage : storages) {
    const bool frozen = storage == chunk.plan->frozen_storage();
    values.push_back(parameters_[frozen ? chunk.frozen
                                        : chunk.first_bucket + static_cast<std::size_t>(storage)]);
  }
  return values;
}

void ModuleEmitter::SaveContexts(const ForwardBlock& forward, const Turn& turn,
                                 std::vector<ValueId>& produced) {
  MicrobatchContext& context = context_of(turn);
  const bool absent = module_.settings.backward == BackwardMode::kAbsent;
  for (const BackwardBlock& backward : forward.backward) {
    std::vector<ValueId>& saved = context.saved.emplace_back();
    if (!backward.active || absent) continue;
    const BlockShape shape = ShapeOf(turn, backward);
    const std::uint16_t what = backward.recomputed ? kSlotCheckpoint : kSlotContext;
    const base::Bytes bytes = backward.recomputed ? CheckpointBytes(shape) : ContextBytes(shape);
    const SlotKey key = Key(turn, what, static_cast<std::size_t>(backward.block.num_layers),
                            Span(backward.block, backward.first_layer));
    const ValueKind kind = backward.recomputed ? ValueKind::kCheckpoint : ValueKind::kContext;
    saved.push_back(writer_.AddValue(
        ActivationStorage(kind, MemoryCategory::kActivations, turn, writer_.Size(key, bytes))));
    produced.push_back(saved.back());
    if (!backward.block.head) continue;
    const bool defers = Defers(backward, turn);
    if (defers) {
      context.logit_gradient = AddLogitGradient(shape, turn);
      produced.push_back(*context.logit_gradient);
    }
    const base::Bytes apart = defers ? LogitGradientBytes(shape) : base::Bytes(0);
    const SizeId logits = writer_.Size(Key(kSlotLogits, 0, defers ? 1 : 0),
                                       base::Bytes(LogitBytes(shape).value() - apart.value()));
    context.logits = writer_.AddValue(
        ActivationStorage(ValueKind::kContext, MemoryCategory::kLogits, turn, logits));
    produced.push_back(*context.logits);
  }
}

BlockSpan ModuleEmitter::SpanOf(const BackwardBlock& block) {
  return {.block = block.block,
          .first_layer = block.first_layer,
          .recomputed = block.recomputed,
          .needs_input_gradient = block.needs_input_gradient,
          .needs_weight_gradient = block.needs_weight_gradient,
          .active = block.active};
}

std::uint32_t ModuleEmitter::SpanOf(SlotKey key, const Turn& turn, const ForwardBlock& block) {
  key.chunk = static_cast<std::uint16_t>(turn.chunk);
  key.microbatch = -1;
  std::vector<BlockSpan> parts;
  for (const BackwardBlock& part : block.backward) {
    parts.push_back(SpanOf(part));
    if (module_.settings.backward == BackwardMode::kAbsent) parts.back().active = false;
  }
  return writer_.Span(key, {.block = block.block, .first_layer = block.first_layer}, parts);
}

std::optional<ValueId> ModuleEmitter::Forward(StepState& state, const Turn& turn,
                                              const std::vector<ValueId>& inputs) {
  const std::vector<ForwardBlock>& blocks = BlocksOf(turn);
  context_of(turn) = {};
  std::vector<ValueId> flowing = inputs;
  std::optional<ValueId> output;
  for (std::size_t index = 0; index < blocks.size(); ++index) {
    const ForwardBlock& block = blocks[index];
    const BlockShape shape = ShapeOf(turn, block.block);
    std::vector<ValueId> consumed = flowing;
    const bool waits_for_all =
        index == 0 && turn == Turn{0, 0} && !job_.optimizer.overlap_param_gather;
    const std::vector<ValueId> parameters =
        waits_for_all ? parameters_ : Parameters(turn, block.parameters);
    consumed.insert(consumed.end(), parameters.begin(), parameters.end());
    std::vector<ValueId> produced;
    output.reset();
    if (!block.block.head) {
      const bool leaves =
          index + 1 == blocks.size() && at_.ends_module && module_.kind != ModuleKind::kDecoder;
      const SizeId size =
          writer_.Size(Key(turn, kSlotActivation, static_cast<std::size_t>(block.block.num_layers),
                           Span(block.block, block.first_layer)),
                       ActivationBytes(shape));
      output = writer_.AddValue(ActivationStorage(
          ValueKind::kActivation, leaves ? MemoryCategory::kBoundary : MemoryCategory::kActivations,
          turn, size));
      produced.push_back(*output);
    }
    SaveContexts(block, turn, produced);
    Op op = ComputeOp(state, shape, Action::kForward, turn, index);
    const SlotKey key = Key(turn, kSlotForward, static_cast<std::size_t>(block.block.num_layers),
                            Span(block.block, block.first_layer));
    op.size = writer_.WorkSlot(key, works_.Get(at_.module, shape, Action::kForward));
    op.span = SpanOf(key, turn, block);
    state.last_compute = writer_.Add(op, consumed, produced);
    flowing.clear();
    if (output) flowing.push_back(*output);
  }
  return output;
}

std::uint32_t ModuleEmitter::AddBackward(StepState& state, const BackwardBlock& block,
                                         const Turn& turn, std::size_t index,
                                         std::vector<ValueId> consumed,
                                         std::vector<ValueId> produced) {
  const BlockShape shape = ShapeOf(turn, block);
  const std::size_t layers = static_cast<std::size_t>(block.block.num_layers);
  const std::uint32_t span = Span(block.block, block.first_layer);
  const std::vector<ValueId> parameters = Parameters(turn, block.parameters);
  std::vector<ValueId>& saved = context_of(turn).saved[index];
  if (block.recomputed) {
    const SizeId size = writer_.Size(Key(turn, kSlotContext, layers, span), ContextBytes(shape));
    const ValueId context = writer_.AddValue(
        ActivationStorage(ValueKind::kContext, MemoryCategory::kActivations, turn, size));
    Op op = ComputeOp(state, shape, Action::kRecompute, turn, index);
    op.size = writer_.WorkSlot(Key(turn, kSlotRecompute, layers, span),
                               works_.Get(at_.module, shape, Action::kRecompute));
    op.span = writer_.Span(Key(kSlotRecompute, layers, span), SpanOf(block));
    std::vector<ValueId> read = saved;
    // The layer is rebuilt right before its backward, so the gradient is waited for first.
    read.insert(read.end(), consumed.begin(), consumed.end());
    read.insert(read.end(), parameters.begin(), parameters.end());
    writer_.Add(op, read, {context});
    saved = {context};
  }
  consumed.insert(consumed.end(), saved.begin(), saved.end());
  consumed.insert(consumed.end(), parameters.begin(), parameters.end());
  if (block.needs_weight_gradient) Accumulate(block, turn, consumed, produced);
  Op op = ComputeOp(state, shape, Action::kBackward, turn, index);
  op.size = writer_.WorkSlot(Key(turn, kSlotBackward, layers, span),
                             works_.Get(at_.module, shape, Action::kBackward));
  op.span = writer_.Span(Key(kSlotBackward, layers, span), SpanOf(block));
  return writer_.Add(op, consumed, produced);
}

void ModuleEmitter::Accumulate(const BackwardBlock& block, const Turn& turn,
                               std::vector<ValueId>& consumed, std::vector<ValueId>& produced) {
  for (const int bucket : block.parameters) {
    ValueId& gradient = gradients_[chunk_of(turn).first_bucket + static_cast<std::size_t>(bucket)];
    consumed.push_back(gradient);
    gradient = writer_.NextVersion(gradient);
    produced.push_back(gradient);
  }
}

void ModuleEmitter::Backward(StepState& state, const Turn& turn,
                             const std::vector<ValueId>& output_gradients,
                             const std::vector<ValueId>& accumulated,
                             const std::vector<ValueId>& input_gradients) {
  if (!has_backward(turn.chunk)) return;
  std::vector<const BackwardBlock*> blocks;
  for (const ForwardBlock& forward : BlocksOf(turn)) {
    for (const BackwardBlock& backward : forward.backward) blocks.push_back(&backward);
  }
  MicrobatchContext& context = context_of(turn);
  const bool overlaps =
      turn.microbatch + 1 == at_.num_microbatches && job_.optimizer.overlap_grad_reduce;
  std::vector<ValueId> flowing = output_gradients;
  for (std::size_t index = blocks.size(); index-- > 0;) {
    const BackwardBlock& block = *blocks[index];
    if (!block.active) break;
    const bool is_last = index == 0 || !blocks[index - 1]->active;
    std::vector<ValueId> consumed = flowing;
    if (block.block.head && context.logits) consumed.push_back(*context.logits);
    std::vector<ValueId> produced;
    if (is_last) {
      consumed.insert(consumed.end(), accumulated.begin(), accumulated.end());
      produced = input_gradients;
    } else {
      const BackwardBlock& before = *blocks[index - 1];
      const SizeId size =
          writer_.Size(Key(turn, kSlotActivation, static_cast<std::size_t>(before.block.num_layers),
                           Span(before.block, before.first_layer)),
                       ActivationBytes(ShapeOf(turn, before.block)));
      produced.push_back(writer_.AddValue(
          ActivationStorage(ValueKind::kGradient, MemoryCategory::kActivations, turn, size)));
      flowing = produced;
    }
    state.last_compute = Defers(block, turn)
                             ? DeferHead(state, block, turn, index, consumed, produced)
                             : AddBackward(state, block, turn, index, consumed, produced);
    if (overlaps && block.needs_weight_gradient) ReduceFinished(state, block, turn);
  }
}

void ModuleEmitter::ReduceFinished(StepState& state, const BackwardBlock& block, const Turn& turn) {
  for (auto at = block.finishes.rbegin(); at != block.finishes.rend(); ++at) {
    const std::size_t bucket = chunk_of(turn).first_bucket + static_cast<std::size_t>(*at);
    const bool waits = WaitsForDeferred(bucket) || HoldsSharedEmbedding(bucket);
    if (!waits) ReduceBucket(state, bucket, /*serial=*/false);
  }
}

}  // namespace isthmus::plan
