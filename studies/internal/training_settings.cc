#include <utility>

#include "studies/internal/training_row.h"
#include "studies/internal/training_spec.h"

// How a row's software runs the model: what the row says, else the release's defaults.
namespace isthmus::studies::internal {

using plan::AttentionKernel;
using plan::DType;
using plan::TpOverlap;

namespace {

const char* NameOf(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::kCudnn:
      return "cuDNN";
    case AttentionKernel::kFlash3:
      return "FlashAttention-3";
    case AttentionKernel::kFlash2:
      return "FlashAttention-2";
    case AttentionKernel::kFlash1:
      return "FlashAttention-1";
    case AttentionKernel::kUnfused:
      return "unfused";
  }
  return "";
}

}  // namespace

const plan::DefaultReason* TrainingSpec::ReasonOf(std::string_view key) const {
  for (const plan::DefaultReason& reason : release_.framework->reasons) {
    if (reason.key == key) return &reason;
  }
  return nullptr;
}

plan::DefaultMark TrainingSpec::MarkOf(std::string_view key) const {
  const plan::DefaultReason* reason = ReasonOf(key);
  return reason != nullptr ? reason->mark : plan::DefaultMark::kAssumed;
}

void TrainingSpec::AssumeDefault(std::string_view key, std::string_view value) {
  const plan::DefaultReason* reason = ReasonOf(key);
  Assume("{} {}: {} ({})", key, value,
         reason != nullptr ? reason->text : "default of the framework", plan::ToText(MarkOf(key)));
}

void TrainingSpec::Open(std::string_view key, std::string what,
                        std::function<void(plan::ModuleSettings&)> change) {
  OpenScenario(key, std::move(what), [change = std::move(change)](scenarios::ScenarioSpec& spec) {
    change(spec.modules.front().settings);
  });
}

void TrainingSpec::OpenScenario(std::string_view key, std::string what,
                                const std::function<void(scenarios::ScenarioSpec&)>& change) {
  const plan::DefaultMark mark = MarkOf(key);
  const auto use =
      mark == plan::DefaultMark::kSoftware ? AlternativeUse::kSettled : AlternativeUse::kOpen;
  open_.push_back({std::move(what), use, change});
  if (mark == plan::DefaultMark::kChosenAfterSeeingRuns) Unless(change);
}

void TrainingSpec::FillSettings(plan::ModuleSettings& settings) {
  const std::string recompute = Lower(row_.text("recompute"));
  if (Has(recompute, "full")) settings.recompute = plan::Recompute::kFull;
  if (Has(recompute, "selective")) settings.recompute = plan::Recompute::kSelective;
  if (recompute.empty()) Assume("no recomputation: not stated");
  const std::string precision = Upper(row_.text("precision"));
  if (precision == "FP16") settings.precision = DType::kFp16;
  if (precision.starts_with("FP8")) settings.precision = DType::kFp8;
  if (precision.empty()) Assume("bf16: the precision is not stated");
  FillTensorParallel(settings);
  FillGradients(settings);
  FillAttention(settings);
}

void TrainingSpec::FillTensorParallel(plan::ModuleSettings& settings) {
  const std::string stated = Lower(row_.text("seq_parallel"));
  if (!stated.empty()) settings.sequence_parallel = stated != "no";
  if (llm().layout.tp == 1) return;
  if (stated.empty()) Assume("sequence parallelism on with tp > 1: not stated");
  const std::string flags = Lower(row_.text("overlap_flags"));
  const bool is_off = Has(flags, "tp_comm_overlap=false") || Has(flags, "tp_comm_overlap=0") ||
                      Has(flags, "no ub_tp_overlap");
  const bool is_on = !is_off && (Has(flags, "tp_comm_overlap") || Has(flags, "tp-comm-overlap"));
  TpOverlap& overlap = settings.tp_overlap;
  if (is_on) overlap = TpOverlap::kUserBuffers;
  // User buffers need sequence parallelism.
  const bool needs_bulk = is_off || !settings.sequence_parallel;
  if (overlap == TpOverlap::kUserBuffers && needs_bulk) overlap = TpOverlap::kBulk;
  if (is_on || is_off) return;
  AssumeDefault("tp_overlap", overlap == TpOverlap::kBulk   ? "bulk"
                              : overlap == TpOverlap::kNone ? "none"
                                                            : "user_buffers");
  if (overlap != TpOverlap::kUserBuffers) return;
  Open("tp_overlap", "tp_overlap bulk",
       [](plan::ModuleSettings& open) { open.tp_overlap = TpOverlap::kBulk; });
}

void TrainingSpec::FillGradients(plan::ModuleSettings& settings) {
  const std::string& flags = row_.text("overlap_flags");
  const bool is_bf16 = Has(flags, "grad_sync bf16");
  const bool is_fp32 = Has(flags, "fp32 grad accumulation");
  if (is_bf16) settings.gradient_dtype = DType::kBf16;
  if (is_fp32) settings.gradient_dtype = DType::kFp32;
  if (is_bf16 || is_fp32) return;
  const bool scored_bf16 = settings.gradient_dtype == DType::kBf16;
  AssumeDefault("gradient_dtype", scored_bf16 ? "bf16" : "fp32");
  const DType other = scored_bf16 ? DType::kFp32 : DType::kBf16;
  Open("gradient_dtype", scored_bf16 ? "fp32 gradients" : "bf16 gradients",
       [other](plan::ModuleSettings& open) { open.gradient_dtype = other; });
}

void TrainingSpec::FillAttention(plan::ModuleSettings& settings) {
  const std::string& flags = row_.text("overlap_flags");
  const bool is_stated = Has(flags, "kernel: ") || Has(flags, "flash_attention");
  if (Has(flags, "flash_attention2")) settings.attention = AttentionKernel::kFlash2;
  if (Has(flags, "flash_attentionv1")) settings.attention = AttentionKernel::kFlash1;
  if (Has(flags, "kernel: fused") || Has(flags, "kernel: torch")) {
    settings.attention = AttentionKernel::kUnfused;
  }
  if (is_stated) return;
  // The first of the release's order that the GPU has kernels of; A100 has no cuDNN rows.
  const bool is_hopper = row_.text("gpu") != "A100";
  if (!is_hopper && settings.attention == AttentionKernel::kCudnn) {
    settings.attention = AttentionKernel::kFlash2;
  }
  AssumeDefault("attention", NameOf(settings.attention));
  if (!is_hopper) return;
  const AttentionKernel other = settings.attention == AttentionKernel::kFlash2
                                    ? AttentionKernel::kCudnn
                                    : AttentionKernel::kFlash2;
  Open("attention", fmt::format("{} attention", NameOf(other)),
       [other](plan::ModuleSettings& open) { open.attention = other; });
}

void TrainingSpec::FillOptimizer() {
  const plan::FrameworkDefaults& defaults = release_.framework->defaults;
  const std::string flags = Lower(row_.text("overlap_flags"));
  spec_.optimizer.overlap_grad_reduce =
      defaults.overlap_grad_reduce && !Has(flags, "overlap_grad_reduce=false");
  spec_.optimizer.overlap_param_gather =
      defaults.overlap_param_gather && !Has(flags, "overlap_param_gather=false");
  Assume("distributed optimizer {} overlap of gradients and parameters",
         spec_.optimizer.overlap_grad_reduce ? "with" : "without");
}

}  // namespace isthmus::studies::internal
