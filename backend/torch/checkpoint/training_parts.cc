#include "backend/torch/checkpoint/training_parts.h"

namespace isthmus::backend {
namespace {

/// Calls visit(bucket number, bucket, parameter number, part without states) for what is owned.
template <typename Visit>
void ForEachOwned(ModuleParameters& parameters, const Visit& visit) {
  std::vector<Bucket>& buckets = parameters.buckets();
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    for (std::size_t at = 0; at < buckets[bucket].parameters().size(); ++at) {
      const std::int64_t size =
          buckets[bucket].OwnedPart(buckets[bucket].owned_weights(), at).numel();
      if (size == 0) continue;
      const std::int64_t begin = buckets[bucket].OwnedPartBegin(at);
      visit(bucket, buckets[bucket], at,
            StoredPart{buckets[bucket].parameters()[at], begin, begin + size, {}});
    }
  }
}

void AddWeights(const Parameter* parameter, std::vector<StoredPart>& parts) {
  const at::Tensor weight = parameter->weight.view({-1});
  parts.push_back({parameter, 0, weight.numel(), {{StateKind::kWeight, weight}}});
}

}  // namespace

std::vector<StoredPart> OwnedParts(ModuleParameters& parameters) {
  std::vector<StoredPart> parts;
  ForEachOwned(
      parameters, [&](std::size_t number, Bucket& bucket, std::size_t at, StoredPart part) {
        const Adam& state = parameters.states()[number];
        const bool apart = state.master().defined();
        const auto own = [&](const at::Tensor& of) { return bucket.OwnedPart(of, at); };
        part.states = {{StateKind::kWeight, own(apart ? state.master() : bucket.owned_weights())},
                       {StateKind::kFirstMoment, own(state.first_moment())},
                       {StateKind::kSecondMoment, own(state.second_moment())}};
        parts.push_back(std::move(part));
      });
  return parts;
}

std::vector<StoredPart> OwnedGradients(ModuleParameters& parameters) {
  std::vector<StoredPart> parts;
  ForEachOwned(parameters, [&](std::size_t, Bucket& bucket, std::size_t at, StoredPart part) {
    part.states = {{StateKind::kGradient, bucket.OwnedPart(bucket.owned_gradients(), at)}};
    parts.push_back(std::move(part));
  });
  return parts;
}

std::vector<StoredPart> FrozenWeights(ModuleParameters& parameters) {
  std::vector<StoredPart> parts;
  for (const Parameter* parameter : parameters.frozen()) AddWeights(parameter, parts);
  return parts;
}

std::vector<StoredPart> WorkingWeights(ModuleParameters& parameters) {
  std::vector<StoredPart> parts = FrozenWeights(parameters);
  for (const Bucket& bucket : parameters.buckets()) {
    for (const Parameter* parameter : bucket.parameters()) AddWeights(parameter, parts);
  }
  return parts;
}

}  // namespace isthmus::backend
