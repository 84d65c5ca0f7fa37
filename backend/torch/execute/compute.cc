#include "backend/torch/execute/compute.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "backend/torch/dtype.h"
#include "base/check.h"

namespace isthmus::backend {
namespace {

/// A leaf with the values of `tensor`; undefined stays undefined.
at::Tensor Leaf(const at::Tensor& tensor, bool needs_gradient) {
  if (!tensor.defined()) return {};
  return tensor.detach().requires_grad_(needs_gradient);
}

}  // namespace

Compute::Compute(const Parts& parts) : parts_(parts), role_(parts.program.role(parts.rank)) {}

bool Compute::is_decoder(const plan::Op& op) const {
  return parts_.program.modules[op.module].module.kind == plan::ModuleKind::kDecoder;
}

bool Compute::has_work(const plan::Op& op) const {
  return !parts_.program.WorkOf(parts_.rank, op).parts.empty();
}

bool Compute::is_boundary(plan::ValueId value) const {
  return parts_.values.StorageOf(value).category == plan::MemoryCategory::kBoundary;
}

at::ScalarType Compute::TypeOf(const plan::Op& op) const {
  return ToTorch(plan::ActivationType(parts_.program.modules[op.module].module.settings));
}

void Compute::Run(const plan::Op& op, StepSums& sums) {
  if (!has_work(op)) return ProduceEmpty(op);
  switch (op.action()) {
    case plan::Action::kForward:
      return Forward(op, sums);
    case plan::Action::kRecompute:
      return Recompute(op);
    case plan::Action::kBackward:
    case plan::Action::kBackwardInput:
      return Backward(op, sums);
    case plan::Action::kBackwardWeight:
      return BackwardWeight(op);
  }
}

// Of no tokens: tensors without rows, and gradients that nothing came to.
void Compute::ProduceEmpty(const plan::Op& op) {
  const std::int64_t hidden = parts_.program.modules[op.module].module.transformer.hidden;
  for (const plan::ValueId value : role_.produced_by(op)) {
    const plan::ValueKind kind = parts_.values.StorageOf(value).kind;
    if (kind != plan::ValueKind::kActivation && kind != plan::ValueKind::kGradient) continue;
    HeldValue& held = parts_.values.At(value);
    if (is_boundary(value)) {
      const BoundaryTransform& boundary =
          parts_.boundaries[parts_.program.EdgeFrom(parts_.values.StorageOf(value).module)];
      const Way way = kind == plan::ValueKind::kActivation ? Way::kForward : Way::kBackward;
      held.tokens = boundary.Held(way, op.microbatch, 0);
      if (!held.tensor.defined()) held.tensor = boundary.Zeros(held.tokens.size());
    } else {
      held.tensor = at::zeros({0, hidden}, at::TensorOptions(parts_.device).dtype(TypeOf(op)));
    }
  }
}

plan::Interval Compute::Microbatch(const plan::Op& op, std::size_t edge, std::int64_t rows) const {
  const plan::Program& program = parts_.program;
  if (!program.boundaries[edge].colocated || op.microbatch < 0) return {0, rows};
  const int shard = program.modules[op.module].grid.IndexIn(parts_.rank, plan::kDp);
  return program.MicrobatchTokens(edge, shard, op.microbatch);
}

Compute::Inputs Compute::TakeInputs(const plan::Op& op) {
  Inputs inputs;
  const std::size_t num_edges = parts_.program.edges.size();
  std::vector<std::vector<HeldValue*>> held(num_edges);
  for (const plan::ValueId value : role_.consumed_by(op)) {
    const plan::Storage& storage = parts_.values.StorageOf(value);
    if (storage.kind != plan::ValueKind::kActivation) continue;
    HeldValue& input = parts_.values.At(value);
    if (is_boundary(value)) {
      held[parts_.program.EdgeFrom(storage.module)].push_back(&input);
    } else {
      inputs.hidden = input.tensor;
    }
  }
  if (!is_decoder(op)) return inputs;
  inputs.boundary.resize(num_edges);
  for (std::size_t edge = 0; edge < num_edges; ++edge) {
    if (held[edge].empty()) continue;
    const at::Tensor rows =
        parts_.boundaries[edge].Needed(Way::kForward, op.microbatch, held[edge]).rows;
    const plan::Interval mine = Microbatch(op, edge, rows.size(0));
    inputs.boundary[edge] = rows.narrow(0, mine.begin, mine.size());
  }
  return inputs;
}

std::shared_ptr<const BlockData> Compute::DataOf(const plan::Op& op, std::int64_t step) {
  if (step != std::exchange(data_step_, step)) data_.clear();
  auto& [microbatch, data] = data_[op.module];
  if (!data || microbatch != op.microbatch) {
    microbatch = op.microbatch;
    data = std::make_shared<const BlockData>(parts_.data.Get(
        {.module = op.module, .rank = parts_.rank, .step = step, .microbatch = op.microbatch}));
  }
  return data;
}

at::Tensor Compute::RunChunk(const plan::Op& op, const PartContext& context) {
  PartInputs inputs{.hidden = context.hidden, .boundary = {}, .data = context.data.get()};
  for (const at::Tensor& boundary : context.boundary) {
    inputs.boundary.push_back(boundary.defined() ? boundary.to(TypeOf(op)) : at::Tensor());
  }
  return ChunkOf(op).Forward(context.span, inputs);
}

std::shared_ptr<PartContext> Compute::RunPart(const plan::Op& op, const plan::BlockSpan& part,
                                              const Inputs& inputs, StepSums& sums) {
  auto context = std::make_shared<PartContext>();
  context->span = part;
  if (part.block.stem || part.block.head) context->data = DataOf(op, sums.step);
  const bool builds_graph = part.active && !part.recomputed;
  const bool needs_gradient = builds_graph && part.needs_input_gradient;
  context->hidden = Leaf(inputs.hidden, needs_gradient);
  for (const at::Tensor& boundary : inputs.boundary) {
    context->boundary.push_back(Leaf(boundary, needs_gradient));
  }
  const at::AutoGradMode grad_mode(builds_graph);
  context->output = RunChunk(op, *context);
  return context;
}

void Compute::Forward(const plan::Op& op, StepSums& sums) {
  const plan::BlockSpan& span = role_.spans[op.span];
  const auto produced = role_.produced_by(op);
  std::size_t next = span.block.head ? 0 : 1;
  Inputs inputs = TakeInputs(op);
  for (std::uint32_t at = 0; at < span.num_parts; ++at) {
    const plan::BlockSpan& part = role_.spans[span.first_part + at];
    const std::shared_ptr<PartContext> context = RunPart(op, part, inputs, sums);
    inputs = {.hidden = context->output.detach(), .boundary = {}};
    if (part.block.head) CountLoss(op, *context, sums);
    if (!part.active) continue;
    if (part.recomputed) context->output = at::Tensor();
    parts_.values.At(produced[next++]).context = context;
    // Logits are in the head's context.
    while (next < produced.size() &&
           parts_.values.StorageOf(produced[next]).category == plan::MemoryCategory::kLogits) {
      ++next;
    }
  }
  if (span.block.head) return;
  HeldValue& output = parts_.values.At(produced.front());
  output.tensor = inputs.hidden;
  if (!is_boundary(produced.front())) return;
  output.tokens = parts_.boundaries[parts_.program.EdgeFrom(op.module)].Held(
      Way::kForward, op.microbatch, output.tensor.size(0));
  ISTHMUS_CHECK(output.tokens.size() == output.tensor.size(0), "{} rows for tokens [{}, {})",
                output.tensor.size(0), output.tokens.begin, output.tokens.end);
}

void Compute::CountLoss(const plan::Op& op, const PartContext& context, StepSums& sums) const {
  const plan::Grid& grid = parts_.program.modules[op.module].grid;
  if (grid.Coordinate(parts_.rank, plan::Axis::kTp) > 0) return;
  const at::Tensor loss = context.output.detach().to(at::kDouble);
  sums.loss = sums.loss.defined() ? sums.loss + loss : loss;
  if (grid.Coordinate(parts_.rank, plan::Axis::kCp) > 0) return;
  sums.tokens += context.data->loss_mask.to(at::kLong).sum().item<std::int64_t>();
}

void Compute::Recompute(const plan::Op& op) {
  for (const plan::ValueId value : role_.consumed_by(op)) {
    const std::shared_ptr<PartContext>& kept = parts_.values.At(value).context;
    if (!kept) continue;
    auto context = std::make_shared<PartContext>(*kept);
    context->hidden = Leaf(kept->hidden, kept->span.needs_input_gradient);
    for (at::Tensor& boundary : context->boundary) {
      boundary = Leaf(boundary, kept->span.needs_input_gradient);
    }
    const at::AutoGradMode grad_mode(true);
    context->output = RunChunk(op, *context);
    parts_.values.At(role_.produced_by(op).front()).context = context;
    return;
  }
  ISTHMUS_CHECK(false, "a recompute without a checkpoint");
}

at::Tensor Compute::OutputGradient(const plan::Op& op, const PartContext& context,
                                   const StepSums& sums) {
  if (context.span.block.head) return at::full_like(context.output, sums.loss_scale);
  std::vector<HeldValue*> boundary;
  at::Tensor gradient;
  for (const plan::ValueId value : role_.consumed_by(op)) {
    if (parts_.values.StorageOf(value).kind != plan::ValueKind::kGradient) continue;
    if (is_boundary(value)) {
      boundary.push_back(&parts_.values.At(value));
    } else {
      gradient = parts_.values.At(value).tensor;
    }
  }
  // A decoder's boundary gradients are the window's so far, not what comes in.
  if (!is_decoder(op) && !boundary.empty()) {
    gradient = parts_.boundaries[parts_.program.EdgeFrom(op.module)]
                   .Needed(Way::kBackward, op.microbatch, boundary)
                   .rows;
  }
  ISTHMUS_CHECK(gradient.defined(), "a backward without a gradient");
  return gradient.to(context.output.scalar_type());
}

void Compute::Backward(const plan::Op& op, const StepSums& sums) {
  const auto consumed = role_.consumed_by(op);
  const auto found = std::find_if(consumed.begin(), consumed.end(), [&](plan::ValueId value) {
    return parts_.values.At(value).context != nullptr;
  });
  ISTHMUS_CHECK(found != consumed.end(), "a backward without a context");
  PartContext& context = *parts_.values.At(*found).context;
  const bool defers = op.action() == plan::Action::kBackwardInput;
  DeferredWork deferred;
  Chunk& chunk = ChunkOf(op);
  if (defers) chunk.Defer(&deferred);
  torch::autograd::backward({context.output}, {OutputGradient(op, context, sums)});
  if (defers) chunk.Defer(nullptr);
  context.output = at::Tensor();  // and its graph
  WriteInputGradients(op, context);
  for (const plan::ValueId value : role_.produced_by(op)) {
    if (parts_.values.StorageOf(value).category != plan::MemoryCategory::kLogits) continue;
    parts_.values.At(value).deferred = std::move(deferred);
    break;
  }
}

void Compute::BackwardWeight(const plan::Op& op) {
  for (const plan::ValueId value : role_.consumed_by(op)) {
    DeferredWork& deferred = parts_.values.At(value).deferred;
    for (const std::function<void()>& work : deferred) work();
    deferred.clear();
  }
}

void Compute::WriteInputGradients(const plan::Op& op, const PartContext& context) {
  for (const plan::ValueId value : role_.produced_by(op)) {
    const plan::Storage& storage = parts_.values.StorageOf(value);
    if (storage.kind != plan::ValueKind::kGradient ||
        storage.category == plan::MemoryCategory::kLogits) {
      continue;
    }
    at::Tensor input = context.hidden;
    if (is_boundary(value)) {
      const std::size_t edge = parts_.program.EdgeFrom(storage.module);
      input = context.boundary[edge];
      // A shard that never gets images has nobody to send it rows, not even none.
      if (!input.defined()) input = parts_.boundaries[edge].Zeros(0);
    }
    ISTHMUS_CHECK(input.defined(), "a gradient of no input");
    const at::Tensor gradient = input.grad().defined() ? input.grad() : at::zeros_like(input);
    if (is_boundary(value)) {
      WriteBoundaryGradient(op, value, gradient);
    } else {
      parts_.values.At(value).tensor = gradient;
    }
  }
}

void Compute::WriteBoundaryGradient(const plan::Op& op, plan::ValueId value,
                                    const at::Tensor& gradient) {
  const std::size_t edge = parts_.program.EdgeFrom(parts_.values.StorageOf(value).module);
  const BoundaryTransform& boundary = parts_.boundaries[edge];
  HeldValue& held = parts_.values.At(value);
  held.tokens = boundary.Held(Way::kBackward, op.microbatch, gradient.size(0));
  if (!parts_.program.boundaries[edge].colocated) {
    held.tensor = gradient.contiguous();
    return;
  }
  if (!held.tensor.defined()) held.tensor = boundary.Zeros(held.tokens.size());
  const plan::Interval mine = Microbatch(op, edge, held.tokens.size());
  held.tensor.narrow(0, mine.begin, mine.size()).copy_(gradient);
}

}  // namespace isthmus::backend
