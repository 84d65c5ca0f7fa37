#pragma once

#include <ATen/ATen.h>

#include "backend/torch/modules/chunk.h"

/// Inputs of the small models.
namespace isthmus::tests {

/// Numbers that look like no others: sines of every index.
inline at::Tensor Values(at::IntArrayRef shape, double phase) {
  std::int64_t size = 1;
  for (const std::int64_t extent : shape) size *= extent;
  return at::arange(size, at::kDouble).mul_(1.7).add_(phase).sin_().view(shape);
}

/// Two samples of 16 tokens of 200 words; the first sample's tokens 2, 3 and 9 are placeholders.
inline backend::BlockData DecoderData() {
  backend::BlockData data;
  data.tokens = at::arange(32).mul_(37).remainder_(200).view({2, 16});
  data.labels = at::arange(32).mul_(53).add_(11).remainder_(200).view({2, 16});
  data.loss_mask = at::arange(32).remainder_(5).ne_(0).to(at::kBool).view({2, 16});
  data.placeholders = {at::zeros({2, 16}, at::kBool)};
  for (const std::int64_t token : {2, 3, 9}) data.placeholders[0][0][token] = true;
  return data;
}

/// The vit's window: 2 samples of 2 images of 8 patches.
inline at::Tensor Patches() { return Values({32, 12}, 0.3); }

}  // namespace isthmus::tests
