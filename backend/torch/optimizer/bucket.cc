#include "backend/torch/optimizer/bucket.h"

#include <algorithm>

#include "base/check.h"

namespace isthmus::backend {

Bucket::Bucket(std::vector<Parameter*> parameters, at::ScalarType weight_type,
               at::ScalarType gradient_type, Shard shard, at::Device device)
    : parameters_(std::move(parameters)), shard_(shard) {
  for (const Parameter* parameter : parameters_) {
    offsets_.push_back(num_parameters_);
    num_parameters_ += parameter->num_elements();
  }
  ISTHMUS_CHECK(num_parameters_ > 0, "a bucket without parameters");
  const std::int64_t part = (num_parameters_ + shard.count - 1) / shard.count;
  const at::TensorOptions on = at::TensorOptions().device(device);
  weights_ = at::zeros({part * shard.count}, on.dtype(weight_type));
  gradients_ = at::zeros({part * shard.count}, on.dtype(gradient_type));
  owned_weights_ = weights_.narrow(0, part * shard.index, part);
  owned_gradients_ = shard.count == 1 ? gradients_ : at::zeros({part}, on.dtype(gradient_type));
  for (std::size_t at = 0; at < parameters_.size(); ++at) {
    Parameter& parameter = *parameters_[at];
    const std::int64_t size = parameter.num_elements();
    parameter.weight = weights_.narrow(0, offsets_[at], size).view(parameter.shape);
    parameter.main_gradient = gradients_.narrow(0, offsets_[at], size).view(parameter.shape);
  }
}

at::Tensor Bucket::OwnedPart(const at::Tensor& owned, std::size_t parameter) const {
  const std::int64_t begin = std::max(offsets_[parameter], owned_begin());
  const std::int64_t end =
      std::min(offsets_[parameter] + parameters_[parameter]->num_elements(), owned_end());
  if (begin >= end) return owned.narrow(0, 0, 0);
  return owned.narrow(0, begin - owned_begin(), end - begin);
}

std::int64_t Bucket::OwnedPartBegin(std::size_t parameter) const {
  return std::max<std::int64_t>(0, owned_begin() - offsets_[parameter]);
}

}  // namespace isthmus::backend
