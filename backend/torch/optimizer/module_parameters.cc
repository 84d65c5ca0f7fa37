#include "backend/torch/optimizer/module_parameters.h"

#include <algorithm>

#include "backend/torch/dtype.h"
#include "base/check.h"

namespace isthmus::backend {
namespace {

/// Frozen weights of a chunk in one buffer.
at::Tensor LayOut(const std::vector<Parameter*>& parameters, const at::TensorOptions& options) {
  std::int64_t size = 0;
  for (const Parameter* parameter : parameters) size += parameter->num_elements();
  at::Tensor buffer = at::zeros({size}, options);
  std::int64_t offset = 0;
  for (Parameter* parameter : parameters) {
    const std::int64_t elements = parameter->num_elements();
    parameter->weight = buffer.narrow(0, offset, elements).view(parameter->shape);
    offset += elements;
  }
  return buffer;
}

void FreeStorage(const at::Tensor& tensor) {
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(storage->allocator()->allocate(0));
}

void AllocateStorage(const at::Tensor& tensor) {
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(storage->allocator()->allocate(storage->nbytes()));
}

}  // namespace

ModuleParameters::ModuleParameters(const plan::Program& program, std::uint16_t module,
                                   base::Rank rank, const std::vector<Chunk*>& chunks,
                                   const TrainingOptions& options, at::Device device)
    : placed_(program.modules[module]), device_(device) {
  const plan::Grid& grid = placed_.grid;
  const plan::ModuleSettings& settings = placed_.module.settings;
  const plan::AxisSet shard_axes = plan::kDpShard | plan::kCp;
  const Shard shard{grid.IndexIn(rank, shard_axes), grid.size(shard_axes)};
  const int stage = grid.Coordinate(rank, plan::Axis::kPp);
  const int num_stages = grid.size(plan::Axis::kPp);
  first_of_tp_ = grid.Coordinate(rank, plan::Axis::kTp) == 0;
  first_replica_ = grid.Coordinate(rank, plan::Axis::kDpReplica) == 0;
  const at::ScalarType weight_type = ToTorch(plan::ParameterType(settings));
  const at::ScalarType gradient_type = ToTorch(settings.gradient_dtype);
  std::vector<Parameter*> all;
  for (std::size_t at = 0; at < chunks.size(); ++at) {
    const std::size_t virtual_stage =
        at * static_cast<std::size_t>(num_stages) + static_cast<std::size_t>(stage);
    const std::vector<plan::Bucket>& planned = placed_.contents[virtual_stage].buckets;
    for (std::size_t bucket = 0; bucket < planned.size(); ++bucket) {
      const std::vector<Parameter*> parameters = chunks[at]->ParametersOf(bucket);
      buckets_.emplace_back(parameters, weight_type, gradient_type, shard, device);
      ISTHMUS_CHECK(buckets_.back().num_parameters() == planned[bucket].parameters,
                    "{}: bucket {} of virtual stage {} has {} parameters, the program says {}",
                    placed_.module.name, bucket, virtual_stage, buckets_.back().num_parameters(),
                    planned[bucket].parameters);
      weight_buffers_.push_back(buckets_.back().weights());
      all.insert(all.end(), parameters.begin(), parameters.end());
    }
  }
  for (Chunk* chunk : chunks) {
    const std::vector<Parameter*> frozen = chunk->FrozenParameters();
    if (frozen.empty()) continue;
    weight_buffers_.push_back(LayOut(frozen, at::TensorOptions(device).dtype(weight_type)));
    frozen_.insert(frozen_.end(), frozen.begin(), frozen.end());
  }
  all.insert(all.end(), frozen_.begin(), frozen_.end());
  InitializeParameters(all, options.seed, options.initial_std,
                       placed_.module.transformer.num_layers);
  for (const Bucket& bucket : buckets_) states_.emplace_back(bucket.owned_weights());
}

std::int64_t ModuleParameters::num_bytes() const {
  std::size_t bytes = 0;
  if (on_host_.empty()) {
    for (const at::Tensor& buffer : weight_buffers_) bytes += buffer.nbytes();
  }
  for (const Bucket& bucket : buckets_) {
    bytes += bucket.gradients().nbytes();
    if (!bucket.owned_gradients().is_alias_of(bucket.gradients())) {
      bytes += bucket.owned_gradients().nbytes();
    }
  }
  for (const Adam& state : states_) {
    bytes += state.first_moment().nbytes() + state.second_moment().nbytes();
    if (state.master().defined()) bytes += state.master().nbytes();
  }
  return static_cast<std::int64_t>(bytes);
}

Pending ModuleParameters::Gather(std::size_t bucket, Communicator& shards) {
  // A copy goes in: c10d copies the part to its place in the whole, which may not be the same.
  return shards.AllGather(buckets_[bucket].weights(), buckets_[bucket].owned_weights().clone());
}

Pending ModuleParameters::Reduce(std::size_t bucket, Communicator& shards) {
  return shards.ReduceScatter(buckets_[bucket].owned_gradients(), buckets_[bucket].gradients());
}

Pending ModuleParameters::SumReplicas(std::size_t bucket, Communicator& replicas) {
  return replicas.AllReduce(buckets_[bucket].owned_gradients());
}

void ModuleParameters::SumReplicated(Communicator& tp) {
  // Whole parameters travel, with zeros for what other shards own: the bytes are the program's.
  std::vector<std::pair<at::Tensor, at::Tensor>> places;  // in the bucket, in the packed buffer
  std::int64_t size = 0;
  const auto for_each = [&](auto&& action) {
    for (Bucket& bucket : buckets_) {
      for (std::size_t at = 0; at < bucket.parameters().size(); ++at) {
        if (bucket.parameters()[at]->partial_over_tp) action(bucket, at);
      }
    }
  };
  for_each(
      [&](Bucket& bucket, std::size_t at) { size += bucket.parameters()[at]->num_elements(); });
  const at::Tensor packed = at::zeros({size}, buckets_.front().gradients().options());
  std::int64_t offset = 0;
  for_each([&](Bucket& bucket, std::size_t at) {
    at::Tensor owned = bucket.OwnedPart(bucket.owned_gradients(), at);
    at::Tensor place =
        packed.narrow(0, offset + bucket.OwnedPartBegin(at) * (owned.numel() > 0), owned.numel());
    place.copy_(owned);
    places.emplace_back(owned, place);
    offset += bucket.parameters()[at]->num_elements();
  });
  tp.AllReduce(packed).Wait();
  for (auto& [owned, place] : places) owned.copy_(place);
}

Pending ModuleParameters::SumEmbedding(std::size_t bucket, Communicator& ends) {
  for (const Parameter* parameter : buckets_[bucket].parameters()) {
    if (is_embedding(*parameter)) return ends.AllReduce(parameter->main_gradient);
  }
  ISTHMUS_CHECK(false, "bucket {} of {} has no embedding", bucket, placed_.module.name);
}

void ModuleParameters::ZeroGradients() {
  for (const Bucket& bucket : buckets_) {
    bucket.gradients().zero_();
    bucket.owned_gradients().zero_();
  }
}

bool ModuleParameters::is_embedding(const Parameter& parameter) const {
  return parameter.tied_copy || parameter.name == placed_.module.name + ".embedding";
}

bool ModuleParameters::counts(const Parameter& parameter) const {
  if (!first_replica_ || (parameter.replicated_over_tp && !first_of_tp_)) return false;
  return !parameter.tied_copy;
}

at::Tensor ModuleParameters::SquaredNorm() const {
  at::Tensor sum = at::zeros({1}, at::TensorOptions(device_).dtype(at::kDouble));
  for (const Bucket& bucket : buckets_) {
    for (std::size_t at = 0; at < bucket.parameters().size(); ++at) {
      if (!counts(*bucket.parameters()[at])) continue;
      const at::Tensor part = bucket.OwnedPart(bucket.owned_gradients(), at);
      if (part.numel() > 0) sum += part.to(at::kDouble).square().sum();
    }
  }
  return sum;
}

at::Tensor ModuleParameters::FoundInfinity() const {
  at::Tensor found = at::zeros({1}, at::TensorOptions(device_).dtype(at::kBool));
  for (const Bucket& bucket : buckets_) {
    found.logical_or_(at::isfinite(bucket.owned_gradients()).all().logical_not());
  }
  return found.to(at::kDouble);
}

void ModuleParameters::ScaleGradients(double factor) {
  for (const Bucket& bucket : buckets_) bucket.owned_gradients().mul_(factor);
}

void ModuleParameters::Step(std::int64_t step, const TrainingOptions& options) {
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    states_[bucket].Step(buckets_[bucket].owned_weights(), buckets_[bucket].owned_gradients(), step,
                         options);
  }
}

void ModuleParameters::MoveToHost(Device& device) {
  for (const at::Tensor& buffer : weight_buffers_) {
    on_host_.push_back(device.CopyToHost(buffer));
    FreeStorage(buffer);
  }
}

void ModuleParameters::MoveToDevice(Device& device) {
  ISTHMUS_CHECK(on_host_.size() == weight_buffers_.size(), "{} isn't on the host",
                placed_.module.name);
  for (std::size_t at = 0; at < weight_buffers_.size(); ++at) {
    AllocateStorage(weight_buffers_[at]);
    device.CopyFromHost(weight_buffers_[at], on_host_[at]);
  }
  on_host_.clear();
}

}  // namespace isthmus::backend
