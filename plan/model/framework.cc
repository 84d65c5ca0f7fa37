#include "plan/model/framework.h"

#include <algorithm>

#include "base/check.h"
#include "plan/model/aten_layer_kernels.h"

namespace isthmus::plan {
namespace {

using enum AttentionKernel;
using enum DefaultMark;

constexpr std::array kCudnnFirst = {kCudnn, kFlash3, kFlash2};
constexpr std::array kFlash2First = {kFlash2, kFlash2, kFlash2};
constexpr std::array kUnfusedOnly = {kUnfused, kUnfused, kUnfused};

constexpr DefaultReason kCudnnReason{
    "attention", "cuDNN attention where the GPU has it, else FlashAttention", kSoftware};
constexpr DefaultReason kFlash2Reason{"attention", "FlashAttention-2", kChosenAfterSeeingRuns};
constexpr DefaultReason kUserBuffersReason{"tp_overlap", "user-buffer overlap", kSoftware};
constexpr DefaultReason kFp32Reason{"gradient_dtype", "fp32 gradients", kAssumed};
constexpr DefaultReason kBf16Reason{"gradient_dtype", "bf16 gradients, as vendor recipes have them",
                                    kAssumed};

constexpr std::array kCoreReasons = {kCudnnReason, kUserBuffersReason, kFp32Reason};
constexpr std::array kRecipeReasons = {kCudnnReason, kUserBuffersReason, kBf16Reason};
constexpr std::array kDeferringRecipeReasons = {
    kCudnnReason, kUserBuffersReason, kBf16Reason,
    DefaultReason{
        "defer_embedding_wgrad",
        "public recipes for pipelines defer it with a limit of 50; looked up after errors "
        "of +4 % were seen",
        kChosenAfterSeeingRuns}};
constexpr std::array kFlashRecipeReasons = {kFlash2Reason, kUserBuffersReason, kBf16Reason};
constexpr std::array kOldMegatronReasons = {
    DefaultReason{"attention", "unfused attention: before flash attention", kSoftware},
    DefaultReason{"tp_overlap", "no user buffers; gathers beside dgrad and wgrad", kSoftware},
    kFp32Reason};
constexpr std::array kLibraryReasons = {
    kCudnnReason,
    DefaultReason{"tp_overlap", "no user buffers; gathers beside dgrad and wgrad", kSoftware},
    DefaultReason{"gradient_dtype", "bf16 gradients: gradients are reduced in their own type",
                  kSoftware}};
constexpr std::array kNanotronReasons = {
    DefaultReason{"loss", "8 B a logit: an fp32 copy and a shifted one that becomes the softmax",
                  kChosenAfterSeeingRuns},
    DefaultReason{"attention", "FlashAttention-2", kSoftware},
    DefaultReason{"tp_overlap", "synchronous tensor-parallel communication", kSoftware},
    kFp32Reason};
constexpr std::array kOwnReasons = {
    DefaultReason{"attention", "blocks of scores that are not kept, as FlashAttention", kSoftware},
    DefaultReason{"tp_overlap", "inner collectives are waited for", kSoftware}, kFp32Reason};
constexpr std::array kEagerReasons = {
    DefaultReason{"loss",
                  "the vocabulary gathered, 16 B a logit: no sharded loss explains which "
                  "fully recomputed runs ran out of memory",
                  kChosenAfterSeeingRuns},
    DefaultReason{"attention", "FlashAttention-2 where a row names no kernel",
                  kChosenAfterSeeingRuns},
    DefaultReason{"tp_overlap", "synchronous tensor-parallel communication", kAssumed},
    DefaultReason{"gradient_dtype",
                  "bf16 gradients: with fp32 some 50 of 401 runs that fit would not",
                  kChosenAfterSeeingRuns}};

// Transformer Engine with Megatron-Core; `recipe`: how the vendor's benchmark recipes set it.
FrameworkRelease TransformerEngine(std::string_view name, std::string_view summary, bool recipe,
                                   bool placeholders) {
  FrameworkRelease release;
  release.name = name;
  release.summary = summary;
  release.defaults.attention = kCudnnFirst;
  release.reasons = kCoreReasons;
  if (recipe) {
    release.defaults.gradient_dtype = DType::kBf16;
    release.reasons = kRecipeReasons;
  }
  release.kernels = &FusedLayerKernels();
  release.memory = placeholders ? &kTransformerEngineRules : &kEarlyTransformerEngineRules;
  return release;
}

// Recipes written for the configuration of NeMo 2.
FrameworkRelease DeferringRecipe(std::string_view name, std::string_view summary) {
  FrameworkRelease release = TransformerEngine(name, summary, true, true);
  release.defaults.defer_embedding_wgrad = kRecipeDeferral;
  release.reasons = kDeferringRecipeReasons;
  return release;
}

FrameworkRelease FlashRecipe(std::string_view name, std::string_view summary) {
  FrameworkRelease release = TransformerEngine(name, summary, true, false);
  release.defaults.attention = kFlash2First;
  release.reasons = kFlashRecipeReasons;
  return release;
}

// TransformerConfig's own defaults where no launcher's arguments set them.
FrameworkRelease Library(std::string_view name, std::string_view summary) {
  FrameworkRelease release = TransformerEngine(name, summary, false, true);
  release.defaults.gradient_dtype = DType::kBf16;
  release.defaults.tp_overlap = TpOverlap::kBulk;
  release.defaults.overlap_grad_reduce = false;
  release.defaults.overlap_param_gather = false;
  release.reasons = kLibraryReasons;
  release.kernels = &UnfusedLayerKernels();
  return release;
}

// Code without Transformer Engine: no fp8, no placeholders.
FrameworkRelease Plain(std::string_view name, std::string_view summary,
                       const FrameworkDefaults& defaults, std::span<const DefaultReason> reasons,
                       const LayerKernelTable& kernels, const MemoryRules& memory) {
  FrameworkRelease release;
  release.name = name;
  release.summary = summary;
  release.defaults = defaults;
  release.reasons = reasons;
  release.kernels = &kernels;
  release.memory = &memory;
  return release;
}

FrameworkRelease Eager(std::string_view name, std::string_view summary,
                       const FrameworkDefaults& defaults, std::span<const DefaultReason> reasons,
                       const LayerKernelTable& kernels, const MemoryRules& memory) {
  FrameworkRelease release = Plain(name, summary, defaults, reasons, kernels, memory);
  release.has_interleaving = false;
  return release;
}

// Code that hides no communication of the optimizer and has no fused loss.
FrameworkDefaults Unfused(const std::array<AttentionKernel, 3>& attention, TpOverlap tp_overlap) {
  FrameworkDefaults defaults;
  defaults.attention = attention;
  defaults.loss = LossKernel::kUnfused;
  defaults.tp_overlap = tp_overlap;
  defaults.overlap_grad_reduce = false;
  defaults.overlap_param_gather = false;
  return defaults;
}

FrameworkDefaults OldMegatron() { return Unfused(kUnfusedOnly, TpOverlap::kBulk); }
FrameworkDefaults EagerDefaults() { return Unfused(kFlash2First, TpOverlap::kNone); }

FrameworkDefaults Nanotron() {
  FrameworkDefaults defaults = EagerDefaults();
  defaults.loss = LossKernel::kShiftedCopy;
  return defaults;
}

FrameworkDefaults EagerLlama() {
  FrameworkDefaults defaults = EagerDefaults();
  defaults.loss = LossKernel::kGatheredEager;
  defaults.gradient_dtype = DType::kBf16;
  return defaults;
}

FrameworkDefaults OwnBackend() {
  FrameworkDefaults defaults;
  defaults.attention = kFlash2First;
  defaults.tp_overlap = TpOverlap::kNone;
  return defaults;
}

FrameworkRelease OwnRelease() {
  FrameworkRelease release =
      Plain("isthmus", "the real backend of this project, as `isthmus run` runs it", OwnBackend(),
            kOwnReasons, AtenLayerKernels(), kMegatron2022Rules);
  release.scales_owned_gradients = true;
  return release;
}

}  // namespace

std::string_view ToText(DefaultMark mark) {
  switch (mark) {
    case kSoftware:
      return "software";
    case kAssumed:
      return "assumed";
    case kChosenAfterSeeingRuns:
      return "chosen_after_seeing_runs";
  }
  ISTHMUS_CHECK(false, "no such mark: {}", static_cast<int>(mark));
}

std::span<const FrameworkRelease> FrameworkReleases() {
  static const std::array releases = {
      TransformerEngine("megatron-core", "Megatron-Core with Transformer Engine, 2025", false,
                        true),
      TransformerEngine("nemo-23.09", "NeMo 23.09 to 25.01 as MLPerf submissions run it", true,
                        false),
      FlashRecipe("nemo-24.03", "NeMo 24.03, vendor recipes"),
      FlashRecipe("nemo-24.07", "NeMo 24.07, vendor recipes"),
      TransformerEngine("nemo-24.11", "NeMo 24.09 to 24.12, vendor recipes", true, false),
      TransformerEngine("nemo-25.02", "NeMo 25.02, vendor recipes", true, false),
      DeferringRecipe("nemo-25.04", "NeMo 25.04 and later, vendor recipes"),
      DeferringRecipe("megatron-bridge-25.09", "Megatron-Bridge 25.09 to 26.x, vendor recipes"),
      Library("megatron-core-library",
              "Megatron-Core used as a library, its configuration made by hand: fused are the "
              "kernels of Transformer Engine alone"),
      Plain("megatron-lm-2022", "Megatron-LM of 2022: no Transformer Engine, unfused attention",
            OldMegatron(), kOldMegatronReasons, FusedLayerKernels(), kMegatron2022Rules),
      Eager("nanotron", "nanotron: eager code with fused norms", Nanotron(), kNanotronReasons,
            EagerLayerKernels(), kNanotronRules),
      Eager("llama-eager", "eager Megatron-type code of the A100 layout sweep", EagerLlama(),
            kEagerReasons, EagerNormLayerKernels(), kEagerLlamaRules),
      Eager("llama-eager-fused-norm", "the same with the fused norm of its `RMS kernel` rows",
            EagerLlama(), kEagerReasons, EagerLayerKernels(), kEagerLlamaFusedNormRules),
      OwnRelease(),
  };
  return releases;
}

const FrameworkRelease& DefaultFramework() { return FrameworkReleases().front(); }

const FrameworkRelease* FindRelease(std::string_view name) {
  const std::span<const FrameworkRelease> releases = FrameworkReleases();
  const auto found = std::ranges::find(releases, name, &FrameworkRelease::name);
  return found == releases.end() ? nullptr : &*found;
}

}  // namespace isthmus::plan
