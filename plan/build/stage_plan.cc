#include "plan/build/stage_plan.h"

#include <algorithm>

namespace isthmus::plan {
namespace {

/// The smallest piece of a chunk: stem, projector, one layer or head.
struct Unit {
  Block block;
  int layer = 0;
  bool trained = true;
  bool trained_before = false;  // something in front of it is trained: gradients must pass
  bool recomputed = false;
  std::int64_t parameters = 0;
  std::int64_t replicated = 0;
  int bucket = -1;

  bool active() const { return trained || trained_before; }
};

BlockShape ShapeOf(const StageRequest& request, const Block& block) {
  return {.module = request.module,
          .block = block,
          .tp = request.tp,
          .projector_in = request.projector_in,
          .projector_out = request.projector_out,
          .projector = request.projector};
}

std::vector<Unit> UnitsOf(const StageRequest& request) {
  const ModuleSettings& settings = request.module->settings;
  const bool encoder = request.module->kind != ModuleKind::kDecoder;
  std::vector<Unit> units;
  const auto add = [&](const Block& block, int layer, bool trained, bool recomputed) {
    units.push_back({.block = block, .layer = layer, .trained = trained, .recomputed = recomputed});
  };
  const bool trained = !settings.frozen;
  const auto add_projector = [&](int layer) {
    if (!request.block.projector) return;
    add({.projector = true}, layer, request.projector == nullptr || !request.projector->frozen,
        false);
  };
  if (!encoder) add_projector(request.first_layer);
  if (request.block.stem) add({.stem = true}, request.first_layer, trained, false);
  const int to_recompute = settings.recompute != Recompute::kFull ? 0
                           : settings.recompute_layers > 0        ? settings.recompute_layers
                                                                  : request.block.num_layers;
  for (int layer = 0; layer < request.block.num_layers; ++layer) {
    add({.num_layers = 1}, request.first_layer + layer, trained, layer < to_recompute);
  }
  const int end = request.first_layer + request.block.num_layers;
  if (encoder) add_projector(end);
  const bool shares = request.block.stem && request.module->transformer.tied_embeddings;
  if (request.block.head) add({.head = true, .head_shares_stem = shares}, end, trained, false);

  bool before = request.trained_upstream;
  for (Unit& unit : units) {
    unit.trained_before = before;
    before = before || unit.trained;
    unit.parameters = RankParameters(ShapeOf(request, unit.block));
    unit.replicated = ReplicatedParameters(ShapeOf(request, unit.block));
  }
  return units;
}

void Merge(Block& into, const Block& unit) {
  into.num_layers += unit.num_layers;
  into.stem = into.stem || unit.stem;
  into.projector = into.projector || unit.projector;
  into.head = into.head || unit.head;
  into.head_shares_stem =
      into.head && !into.stem && (into.head_shares_stem || unit.head_shares_stem);
}

/// Deals trained units to buckets from the back, as gradients become ready.
std::vector<Bucket> FillBuckets(std::vector<Unit>& units, const StageRequest& request) {
  const std::int64_t threshold = request.bucket_parameters;
  const auto is_shared = [&](const Unit& unit) {
    return request.shares_embedding && (unit.block.stem || unit.block.head);
  };
  std::vector<std::vector<Unit*>> from_back;
  std::int64_t filled = 0;
  for (auto unit = units.rbegin(); unit != units.rend(); ++unit) {
    if (!unit->trained) continue;
    if (from_back.empty() || (threshold > 0 && filled >= threshold) || is_shared(*unit) ||
        is_shared(*from_back.back().back())) {
      from_back.emplace_back();
      filled = 0;
    }
    from_back.back().push_back(&*unit);
    filled += unit->parameters;
  }
  std::vector<Bucket> buckets;
  for (auto members = from_back.rbegin(); members != from_back.rend(); ++members) {
    Bucket& bucket = buckets.emplace_back();
    for (Unit* unit : *members) {
      unit->bucket = static_cast<int>(buckets.size()) - 1;
      bucket.first_layer = unit->layer;  // the frontmost comes last
      bucket.parameters += unit->parameters;
      Merge(bucket.block, unit->block);
    }
  }
  return buckets;
}

void AddOnce(std::vector<int>& list, int item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

/// A new backward block starts where flags change, at every recomputed layer, and at a head whose
/// weight gradient may wait.
bool StartsBackward(const StageRequest& request, const Unit& unit, const Unit& before) {
  return unit.recomputed || before.recomputed || unit.trained != before.trained ||
         unit.active() != before.active() || (request.head_apart && unit.block.head);
}

class Cutter {
 public:
  Cutter(const StageRequest& request, int frozen_storage, bool at_buckets)
      : request_(request), frozen_storage_(frozen_storage), at_buckets_(at_buckets) {}

  std::vector<ForwardBlock> Cut(const std::vector<Unit>& units) {
    for (std::size_t at = 0; at < units.size(); ++at) {
      const Unit* before = at > 0 ? &units[at - 1] : nullptr;
      const bool starts = before == nullptr || StartsForward(units[at], *before);
      if (starts) blocks_.push_back({.first_layer = units[at].layer});
      ForwardBlock& forward = blocks_.back();
      if (starts || StartsBackward(request_, units[at], *before)) {
        forward.backward.push_back({.first_layer = units[at].layer});
      }
      Append(units[at], forward);
    }
    MarkFinishes();
    return std::move(blocks_);
  }

 private:
  bool StartsForward(const Unit& unit, const Unit& before) const {
    if (unit.trained != before.trained || unit.active() != before.active()) return true;
    if (at_buckets_ && unit.bucket != before.bucket) return true;
    const int layers = request_.block_layers;
    return layers > 0 && unit.block.num_layers > 0 && blocks_.back().block.num_layers == layers;
  }

  void Append(const Unit& unit, ForwardBlock& forward) const {
    const int storage = unit.trained ? unit.bucket : frozen_storage_;
    Merge(forward.block, unit.block);
    AddOnce(forward.parameters, storage);
    BackwardBlock& backward = forward.backward.back();
    const bool first = backward.parameters.empty();
    Merge(backward.block, unit.block);
    AddOnce(backward.parameters, storage);
    backward.recomputed = unit.recomputed;
    backward.active = unit.active();
    backward.needs_weight_gradient = unit.trained;
    backward.needs_input_gradient =
        (!first && backward.needs_input_gradient) || unit.trained_before;
  }

  /// Backwards run from the back, so a bucket is finished by the first block that touches it.
  void MarkFinishes() {
    std::vector<int> seen;
    for (ForwardBlock& forward : blocks_) {
      for (BackwardBlock& backward : forward.backward) {
        for (const int storage : backward.parameters) {
          if (storage == frozen_storage_) continue;
          if (std::find(seen.begin(), seen.end(), storage) != seen.end()) continue;
          seen.push_back(storage);
          backward.finishes.push_back(storage);
        }
      }
    }
  }

  const StageRequest& request_;
  int frozen_storage_;
  bool at_buckets_;
  std::vector<ForwardBlock> blocks_;
};

}  // namespace

StagePlan PlanStage(const StageRequest& request) {
  std::vector<Unit> units = UnitsOf(request);
  StagePlan plan{.first_layer = request.first_layer, .whole = request.block};
  plan.buckets = FillBuckets(units, request);
  for (const Unit& unit : units) {
    (unit.trained ? plan.trained_parameters : plan.frozen_parameters) += unit.parameters;
    if (unit.trained) plan.replicated_parameters += unit.replicated;
  }
  plan.plain = Cutter(request, plan.frozen_storage(), false).Cut(units);
  plan.bucketed = Cutter(request, plan.frozen_storage(), true).Cut(units);
  return plan;
}

}  // namespace isthmus::plan
