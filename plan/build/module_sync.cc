
#include "plan/build/module_emitter.h"

// The step-level half of ModuleEmitter: parameters, gradient synchronisation, optimizer, offload.
namespace isthmus::plan {
namespace {

constexpr AxisSet kShardAxes = kDpShard | kCp;
constexpr AxisSet kAllAxes = kTp | kCp | kDp | kPp;

}  // namespace

base::Bytes ModuleEmitter::ParameterBytes(std::int64_t parameters) const {
  return base::Bytes{parameters * BytesOf(ParameterType(module_.settings)).value()};
}

base::Bytes ModuleEmitter::ScalarBytes() const {
  return base::Bytes{module_.settings.gradient_dtype == DType::kFp64 ? 8 : 4};
}

base::Bytes ModuleEmitter::GradientBytes(std::int64_t parameters) const {
  return base::Bytes{parameters * BytesOf(module_.settings.gradient_dtype).value()};
}

void ModuleEmitter::AddPersistentStorage() {
  const auto add = [&](ValueKind kind, MemoryCategory category, std::size_t chunk, int bucket,
                       SizeId size) {
    return writer_.AddValue({.kind = kind,
                             .category = category,
                             .persistent = true,
                             .module = static_cast<std::uint16_t>(at_.module),
                             .chunk = static_cast<std::uint16_t>(chunk),
                             .bucket = bucket,
                             .size = size});
  };
  for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    for (std::size_t at = 0; at < chunks_[chunk].plan->buckets.size(); ++at) {
      const std::size_t bucket = chunks_[chunk].first_bucket + at;
      const std::int64_t held = buckets_[bucket]->parameters;
      const int index = static_cast<int>(bucket);
      parameters_.push_back(add(ValueKind::kParameter, MemoryCategory::kParameters, chunk, index,
                                writer_.Size(Key(kSlotParameters, bucket), ParameterBytes(held))));
      gradients_.push_back(add(ValueKind::kGradientBucket, MemoryCategory::kGradients, chunk, index,
                               writer_.Size(Key(kSlotGradients, bucket), GradientBytes(held))));
    }
  }
  for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    const std::int64_t frozen = chunks_[chunk].plan->frozen_parameters;
    if (frozen == 0) continue;
    chunks_[chunk].frozen = parameters_.size();
    parameters_.push_back(
        add(ValueKind::kParameter, MemoryCategory::kParameters, chunk, -1,
            writer_.Size(Key(kSlotParameters, parameters_.size()), ParameterBytes(frozen))));
  }
  reduced_.assign(buckets_.size(), false);
  if (!trained()) return;
  // Over the shards.
  const std::int64_t per_parameter = OptimizerStateBytes(module_.settings.precision).value();
  const std::int64_t owned = (trained_parameters_ + shards() - 1) / shards();
  optimizer_state_ =
      add(ValueKind::kOptimizerState, MemoryCategory::kOptimizerState, 0, -1,
          writer_.Size(Key(kSlotOptimizerState), base::Bytes{owned * per_parameter}));
  BlockShape whole = ShapeOfRank();
  whole.needs_weight_gradient = !module_.settings.frozen;
  const auto keep = [&](ValueKind kind, MemoryCategory category, SlotName slot, base::Bytes bytes) {
    if (bytes.value() == 0) return;
    writer_.AddStorage({.kind = kind,
                        .category = category,
                        .persistent = true,
                        .module = static_cast<std::uint16_t>(at_.module),
                        .size = writer_.Size(Key(slot), bytes)});
  };
  keep(ValueKind::kParameter, MemoryCategory::kParameters, kSlotWeightCopies,
       WeightCopyBytes(whole));
  if (module_.settings.backward == BackwardMode::kAbsent) return;
  keep(ValueKind::kGradientBucket, MemoryCategory::kPlaceholders, kSlotPlaceholders,
       PlaceholderBytes(whole));
}

ValueId ModuleEmitter::AddScalar() {
  return writer_.AddValue({.kind = ValueKind::kScalar,
                           .category = MemoryCategory::kWorkspace,
                           .module = static_cast<std::uint16_t>(at_.module),
                           .size = writer_.Size(Key(kSlotScalar), ScalarBytes())});
}

ValueId ModuleEmitter::Communicate(StepState& state, CollectiveKind kind, std::uint32_t group,
                                   Purpose purpose, const SlotKey& key, base::Bytes bytes,
                                   ValueId value, int bucket, bool serial) {
  Op op{.kind = OpKind::kCollective, .detail = static_cast<std::uint8_t>(kind), .purpose = purpose};
  op.group = group;
  op.lane = writer_.CommunicatorLane(op.group);
  op.module = static_cast<std::uint16_t>(at_.module);
  op.step = static_cast<std::int16_t>(state.step);
  op.size = writer_.Size(key, bytes);
  op.block = static_cast<std::uint16_t>(bucket);
  std::vector<ValueId> consumed{value};
  if (serial && state.serial) consumed.push_back(*state.serial);
  const ValueId after = writer_.NextVersion(value);
  writer_.Add(op, consumed, {after});
  if (serial) state.serial = after;
  return after;
}

void ModuleEmitter::BeginStep(StepState& state) {
  if (!trained()) return;
  for (std::size_t bucket = 0; bucket < buckets_.size() && shards() > 1; ++bucket) {
    parameters_[bucket] = Communicate(state, CollectiveKind::kAllGather, AxesGroup(kShardAxes),
                                      Purpose::kParameterGather, Key(kSlotGather, bucket),
                                      ParameterBytes(buckets_[bucket]->parameters),
                                      parameters_[bucket], static_cast<int>(bucket),
                                      /*serial=*/!job_.optimizer.overlap_param_gather);
  }
  std::vector<ValueId> consumed = gradients_;
  for (ValueId& gradient : gradients_) gradient = writer_.NextVersion(gradient);
  AddOptimizerOp(state, OptimizerAction::kZero, consumed, gradients_);
  reduced_.assign(buckets_.size(), false);
}

void ModuleEmitter::ReduceBucket(StepState& state, std::size_t bucket, bool serial) {
  if (reduced_[bucket]) return;
  reduced_[bucket] = true;
  const std::int64_t held = buckets_[bucket]->parameters;
  if (shards() > 1) {
    gradients_[bucket] =
        Communicate(state, CollectiveKind::kReduceScatter, AxesGroup(kShardAxes),
                    Purpose::kGradientSync, Key(kSlotReduceScatter, bucket), GradientBytes(held),
                    gradients_[bucket], static_cast<int>(bucket), serial);
  }
  if (at_.dp_replica > 1) {
    const std::int64_t owned = (held + shards() - 1) / shards();
    gradients_[bucket] =
        Communicate(state, CollectiveKind::kAllReduce, AxesGroup(kDpReplica),
                    Purpose::kGradientSync, Key(kSlotAllReduceReplicas, bucket),
                    GradientBytes(owned), gradients_[bucket], static_cast<int>(bucket), serial);
  }
}

bool ModuleEmitter::HoldsSharedEmbedding(std::size_t bucket) const {
  const Block& block = buckets_[bucket]->block;
  return at_.embedding_is_shared && (block.stem || block.head);
}

// In front of the bucket's reduction: behind it the two stages own different parts of theirs. Their
// buckets have different numbers, so the op has none.
void ModuleEmitter::SumEmbedding(StepState& state, std::size_t bucket) {
  const Transformer& t = module_.transformer;
  const int multiple = module_.settings.framework->memory->vocabulary_multiple;
  const std::int64_t embedding =
      PaddedVocabulary(t.vocab_size, at_.tp, multiple) / at_.tp * t.hidden;
  const std::uint32_t group = writer_.Group(
      {.kind = GroupRef::Kind::kEmbedding, .module = static_cast<std::uint16_t>(at_.module)});
  gradients_[bucket] = Communicate(state, CollectiveKind::kAllReduce, group, Purpose::kGradientSync,
                                   Key(kSlotEmbeddingGradients), GradientBytes(embedding),
                                   gradients_[bucket], /*bucket=*/0, /*serial=*/true);
}

void ModuleEmitter::SyncGradients(StepState& state) {
  if (!trained()) return;
  for (std::size_t bucket = 0; bucket < gradients_.size(); ++bucket) {
    if (HoldsSharedEmbedding(bucket)) SumEmbedding(state, bucket);
  }
  for (std::size_t bucket = gradients_.size(); bucket-- > 0;) {
    ReduceBucket(state, bucket, /*serial=*/true);
  }
  if (!module_.settings.sequence_parallel || at_.tp == 1 || replicated_parameters_ == 0) return;
  Op op{.kind = OpKind::kCollective,
        .detail = static_cast<std::uint8_t>(CollectiveKind::kAllReduce),
        .purpose = Purpose::kGradientSync};
  op.group = AxesGroup(kTp);
  op.lane = writer_.CommunicatorLane(op.group);
  op.module = static_cast<std::uint16_t>(at_.module);
  op.step = static_cast<std::int16_t>(state.step);
  op.size = writer_.Size(Key(kSlotReplicatedGradients), GradientBytes(replicated_parameters_));
  std::vector<ValueId> consumed = gradients_;
  if (state.serial) consumed.push_back(*state.serial);
  for (ValueId& gradient : gradients_) gradient = writer_.NextVersion(gradient);
  writer_.Add(op, consumed, gradients_);
  state.serial = gradients_.back();
}

std::uint32_t ModuleEmitter::AddOptimizerOp(StepState& state, OptimizerAction action,
                                            const std::vector<ValueId>& consumed,
                                            const std::vector<ValueId>& produced) {
  const std::int64_t held = trained_parameters_;
  const std::int64_t owned = (held + shards() - 1) / shards();
  Op op{.kind = OpKind::kOptimizer,
        .detail = static_cast<std::uint8_t>(action),
        .purpose = Purpose::kOptimizer};
  op.lane = writer_.ComputeLane();
  op.module = static_cast<std::uint16_t>(at_.module);
  op.step = static_cast<std::int16_t>(state.step);
  op.size =
      writer_.WorkSlot(Key(kSlotOptimizer, static_cast<std::size_t>(action)),
                       works_.GetOptimizer(at_.module, module_.settings, held, owned, action));
  return writer_.Add(op, consumed, produced);
}

ValueId ModuleEmitter::Norm(StepState& state) {
  const ValueId squared = AddScalar();
  AddOptimizerOp(state, OptimizerAction::kNorm, gradients_, {squared});
  if (at_.module_ranks == 1) return squared;
  return Communicate(state, CollectiveKind::kAllReduce, AxesGroup(kAllAxes), Purpose::kScalars,
                     Key(kSlotScalar), ScalarBytes(), squared, 0, /*serial=*/false);
}

ValueId ModuleEmitter::CheckOverflow(StepState& state) {
  const ValueId found_inf = AddScalar();
  AddOptimizerOp(state, OptimizerAction::kCheck, gradients_, {found_inf});
  return found_inf;
}

void ModuleEmitter::Optimize(StepState& state, const std::vector<ValueId>& predicates) {
  if (!trained()) return;
  std::vector<ValueId> consumed = gradients_;
  consumed.insert(consumed.end(), predicates.begin(), predicates.end());
  for (ValueId& gradient : gradients_) gradient = writer_.NextVersion(gradient);
  AddOptimizerOp(state, OptimizerAction::kClip, consumed, gradients_);

  consumed = gradients_;
  consumed.insert(consumed.end(), predicates.begin(), predicates.end());
  consumed.push_back(*optimizer_state_);
  optimizer_state_ = writer_.NextVersion(*optimizer_state_);
  std::vector<ValueId> produced{*optimizer_state_};
  for (std::size_t bucket = 0; bucket < gradients_.size(); ++bucket) {
    consumed.push_back(parameters_[bucket]);
    parameters_[bucket] = writer_.NextVersion(parameters_[bucket]);
    produced.push_back(parameters_[bucket]);
  }
  AddOptimizerOp(state, OptimizerAction::kStep, consumed, produced);
}

void ModuleEmitter::Offload(StepState& state, CopyDirection direction,
                            const std::vector<ValueId>& after) {
  Op op{.kind = OpKind::kCopy,
        .detail = static_cast<std::uint8_t>(direction),
        .purpose = Purpose::kOffload};
  op.lane = writer_.CopyLane(direction);
  op.module = static_cast<std::uint16_t>(at_.module);
  op.step = static_cast<std::int16_t>(state.step);
  op.size =
      writer_.Size(Key(kSlotOffload), ParameterBytes(trained_parameters_ + frozen_parameters_));
  std::vector<ValueId> consumed = parameters_;
  consumed.insert(consumed.end(), after.begin(), after.end());
  for (ValueId& parameter : parameters_) parameter = writer_.NextVersion(parameter);
  writer_.Add(op, consumed, parameters_);
}

}  // namespace isthmus::plan
