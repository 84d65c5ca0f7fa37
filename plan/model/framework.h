#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "plan/model/kernel.h"
#include "plan/model/layer_kernels.h"
#include "plan/model/memory_rules.h"
#include "plan/model/run_settings.h"

/// Training frameworks by release, as data: which kernels a layer is made of, which tensors it
/// keeps, and how the framework runs when nobody says otherwise. Nothing else in the project
/// branches on a framework (modelling_runs §4-5, modelling_memory §2, docs/models/layers.md).
namespace isthmus::plan {

/// How a default came to be known, in the words of profiles: known from the framework's code,
/// assumed, or chosen after seeing end-to-end rows (those rows are not blind for it).
enum class DefaultMark : std::uint8_t { kSoftware, kAssumed, kChosenAfterSeeingRuns };
/// "software", "assumed", "chosen_after_seeing_runs".
std::string_view ToText(DefaultMark mark);

/// Why a release has the default it has, for a report's assumptions.
struct DefaultReason {
  std::string_view key;   // the scenario key: "attention", "gradient_dtype" …
  std::string_view text;  // "cuDNN attention on Hopper …"
  DefaultMark mark = DefaultMark::kSoftware;
};

/// Limit of `defer_embedding_wgrad` in the public recipes of 405B, microbatches.
inline constexpr int kRecipeDeferral = 50;

/// What a scenario's keys are when the file doesn't state them.
struct FrameworkDefaults {
  /// The first that the GPU has kernels of.
  std::array<AttentionKernel, 3> attention = {AttentionKernel::kCudnn, AttentionKernel::kFlash3,
                                              AttentionKernel::kFlash2};
  LossKernel loss = LossKernel::kFused;
  DType gradient_dtype = DType::kFp32;
  TpOverlap tp_overlap = TpOverlap::kUserBuffers;
  bool sequence_parallel = true;
  bool overlap_grad_reduce = true;
  bool overlap_param_gather = true;
  /// Microbatches whose gradient of the head's weights waits for the cool-down of a pipeline, in
  /// runs of the release's own recipes. Only studies of published runs take it.
  int defer_embedding_wgrad = 0;
};

/// One release of one framework. All are static and live for ever.
struct FrameworkRelease {
  std::string_view name;     // "nemo-24.11": the scenario key `framework`
  std::string_view summary;  // for the reference of keys
  FrameworkDefaults defaults;
  std::span<const DefaultReason> reasons;

  bool has_interleaving = true;  // its pipeline can have several chunks per rank
  /// Gradients are scaled by 1/tokens where they are owned; Megatron scales the whole buffer.
  bool scales_owned_gradients = false;

  const LayerKernelTable* kernels = nullptr;
  const MemoryRules* memory = &kTransformerEngineRules;  // never null
};

/// In the order of documentation; the first is the default.
std::span<const FrameworkRelease> FrameworkReleases();
/// "megatron-core".
const FrameworkRelease& DefaultFramework();
/// Null if there is none of that name.
const FrameworkRelease* FindRelease(std::string_view name);

}  // namespace isthmus::plan
