#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backend/torch/data/sample.h"
#include "backend/torch/training_options.h"
#include "plan/job.h"

namespace isthmus::tests {

using NamedTensors = std::map<std::string, at::Tensor>;

/// The model graph of a job on one process: whole tensors, one sample after the other, autograd and
/// a plain AdamW. What every layout has to reproduce.
///
/// Shares nothing with backend/torch/modules but the initial values by (seed, name, index). Names
/// and shapes are those of ParameterPiece. Layouts, placement and schedule of the job are not
/// looked at.
class ReferenceModel {
 public:
  ReferenceModel(const plan::Job& job, const backend::TrainingOptions& options,
                 at::ScalarType dtype);

  /// One optimizer step over the samples of a global batch. Returns the mean loss of its valid
  /// tokens, before the update.
  double Step(const std::vector<backend::Sample>& samples);

  const NamedTensors& parameters() const { return parameters_; }
  /// Of trained parameters, after the last step: divided by the number of tokens, and clipped.
  const NamedTensors& gradients() const { return gradients_; }
  const NamedTensors& first_moments() const { return first_moments_; }
  const NamedTensors& second_moments() const { return second_moments_; }
  /// Of the last step, before clipping.
  double gradient_norm() const { return gradient_norm_; }

 private:
  void AddParameter(const std::string& name, std::vector<std::int64_t> shape, bool frozen,
                    int num_layers);
  void AddModule(const plan::Module& module);
  void AddLayer(const plan::Module& module, int layer);
  void AddNorm(const plan::Module& module, const std::string& name);
  void AddProjector(const plan::Module& encoder);

  const at::Tensor& Of(const std::string& name) const { return parameters_.at(name); }
  at::Tensor Linear(const at::Tensor& input, const std::string& name) const;
  at::Tensor Norm(const plan::Module& module, const at::Tensor& input,
                  const std::string& name) const;
  /// `position` counts within what attends to each other.
  at::Tensor Attention(const plan::Module& module, const at::Tensor& input, int layer,
                       std::int64_t span) const;
  at::Tensor Mlp(const plan::Module& module, const at::Tensor& input, int layer) const;
  at::Tensor Layers(const plan::Module& module, at::Tensor hidden, std::int64_t span) const;
  at::Tensor Encode(const plan::Module& module, const at::Tensor& patches) const;
  at::Tensor Project(const plan::Module& encoder, at::Tensor hidden) const;
  at::Tensor Loss(const backend::Sample& sample) const;
  void Update(double tokens);

  plan::Job job_;
  backend::TrainingOptions options_;
  at::ScalarType dtype_;
  NamedTensors parameters_;
  NamedTensors gradients_;
  NamedTensors first_moments_;
  NamedTensors second_moments_;
  std::int64_t num_updates_ = 0;
  double gradient_norm_ = 0.0;
};

}  // namespace isthmus::tests
