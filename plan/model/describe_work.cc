#include <fmt/core.h>

#include "plan/model/internal/memory.h"
#include "plan/model/internal/pieces.h"
#include "plan/model/layers.h"

namespace isthmus::plan {
namespace {

using internal::Pass;
using internal::RankShape;
using internal::SegmentList;

std::string NameOf(const BlockShape& shape, Action action) {
  std::string what = shape.block.stem ? " stem" : "";
  if (shape.block.num_layers > 0) what += fmt::format(" {} layers", shape.block.num_layers);
  if (shape.block.projector) what += " projector";
  if (shape.block.head) what += " head";
  return fmt::format("{} {}{} tokens {}", shape.module->name, ToText(action), what, shape.tokens);
}

// Appends the pieces that `add` builds as one part, unless there are none.
template <typename Add>
void AddPart(Work& work, int count, const Add& add) {
  if (count == 0) return;
  SegmentList list;
  add(list);
  if (!list.empty()) work.parts.push_back({count, list.Take()});
}

bool HasProjection(const BlockShape& shape) {
  return shape.block.projector && internal::ProjectorTokens(shape) > 0;
}

void DescribeForward(const BlockShape& shape, const RankShape& rank, Work& work) {
  const Block& block = shape.block;
  const auto projector = [&](SegmentList& list) { AddProjectorForward(shape, rank, list); };
  const bool projects = HasProjection(shape);
  const int in_front = projects && !rank.encoder_side_projector() ? 1 : 0;
  const int behind = projects && rank.encoder_side_projector() ? 1 : 0;
  AddPart(work, in_front, projector);
  AddPart(work, block.stem ? 1 : 0, [&](SegmentList& list) { AddStemForward(rank, list); });
  AddPart(work, block.num_layers, [&](SegmentList& list) { AddLayerForward(rank, list); });
  AddPart(work, behind, projector);
  AddPart(work, block.head ? 1 : 0, [&](SegmentList& list) { AddHeadForward(rank, list); });
}

void DescribeBackward(const BlockShape& shape, const RankShape& rank, Action action, Work& work) {
  const Block& block = shape.block;
  const bool input = action != Action::kBackwardWeight;
  const bool weight = action != Action::kBackwardInput;
  const Pass pass{input, weight && rank.layer_weights};
  const auto projector = [&](SegmentList& list) {
    AddProjectorBackward(shape, rank, {input, weight}, list);
  };
  const bool layers = rank.layers_run_backward;
  const bool encoder_side = rank.encoder_side_projector();
  const bool projects = HasProjection(shape);
  const int behind = projects && encoder_side && (layers || rank.projector_weights) ? 1 : 0;
  const int in_front =
      projects && !encoder_side && (rank.projector_weights || shape.needs_input_gradient) ? 1 : 0;
  AddPart(work, block.head && layers ? 1 : 0,
          [&](SegmentList& list) { AddHeadBackward(rank, pass, list); });
  AddPart(work, behind, projector);
  AddPart(work, layers ? block.num_layers : 0,
          [&](SegmentList& list) { AddLayerBackward(rank, pass, list); });
  // A frozen decoder's embedding hands on the gradient of what stands in for placeholders.
  const bool hands_on = !rank.layer_weights && rank.decoder && input && layers;
  AddPart(work, block.stem && (pass.weight || hands_on) ? 1 : 0,
          [&](SegmentList& list) { AddStemBackward(rank, pass.weight, list); });
  AddPart(work, in_front, projector);
}

bool is_backward(Action action) {
  return action == Action::kBackward || action == Action::kBackwardInput ||
         action == Action::kBackwardWeight;
}

bool HasNoWork(const BlockShape& shape, Action action) {
  const bool absent = shape.module->settings.backward == BackwardMode::kAbsent;
  return (shape.tokens == 0 && !HasProjection(shape)) || (absent && action != Action::kForward);
}

}  // namespace

Transient TransientOf(const BlockShape& shape, Action action) {
  if (HasNoWork(shape, action)) return {};
  return internal::TransientOf(shape, internal::ShapeOnRank(shape), action);
}

Work DescribeWork(const BlockShape& shape, Action action) {
  const RankShape rank = internal::ShapeOnRank(shape);
  Work work;
  work.name = NameOf(shape, action);
  if (HasNoWork(shape, action)) return work;
  if (action == Action::kForward) DescribeForward(shape, rank, work);
  if (is_backward(action)) DescribeBackward(shape, rank, action, work);
  if (action == Action::kRecompute) {
    AddPart(work, internal::RecomputedLayers(shape),
            [&](SegmentList& list) { AddLayerForward(rank, list); });
  }
  if (rank.settings->host_issue == HostIssue::kEager) {
    work.eager_layers =
        action == Action::kRecompute ? internal::RecomputedLayers(shape) : shape.block.num_layers;
  }
  work.model_flops = internal::ModelFlops(shape, rank, action);
  work.hardware_flops = ExecutedFlops(work);
  const Transient transient = internal::TransientOf(shape, rank, action);
  work.transient_bytes = transient.bytes;
  work.moment = transient.moment;
  return work;
}

}  // namespace isthmus::plan
