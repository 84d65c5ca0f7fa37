#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "studies/internal/training_row.h"
#include "studies/run_case.h"

namespace isthmus::studies {
namespace {

using namespace internal;
using plan::AttentionKernel;
using plan::DType;
using plan::TpOverlap;

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

void Measure(const RunsRow& row, RunsKind kind, RunCase& run) {
  const std::string& metric = row.text("mem_metric");
  const bool is_memory = kind == RunsKind::kMemoryPoints;
  if (!is_memory) {
    run.measured_step_time_s = row.number("step_time_s");
    if (!run.measured_step_time_s) run.measured_step_time_s = row.number("derived_step_time_s");
  }
  const char* column = is_memory ? "value_gib" : "peak_mem_gib";
  if (row.text(column).starts_with('>')) return;  // ran out of memory
  run.measured_memory_gib = row.number(column);
  const bool is_decimal = metric.starts_with("GB") && !Has(metric, "nanotron") &&
                          !Has(row.text("framework"), "zero-bubble");
  if (is_decimal && run.measured_memory_gib) *run.measured_memory_gib *= 1e9 / kGiB;
  if (Has(metric, "reserved")) run.memory_counter = MemoryCounter::kReserved;
  if (Has(metric, "memory_usage") || Has(metric, "GPU Mem")) {
    run.memory_counter = MemoryCounter::kDevice;
  }
}

// Fills a scenario from a row that nothing stands against.
class TrainingSpec {
 public:
  TrainingSpec(const RunsRow& row, RunsKind kind) : row_(row), kind_(kind) {}

  scenarios::ScenarioSpec Fill() {
    spec_.name = row_.text("row_id");
    spec_.description = fmt::format("{} on {} {} GPUs ({})", row_.text("model"),
                                    row_.text("n_gpus"), row_.text("gpu"), row_.text("source"));
    spec_.cluster_preset = *ClusterOf(row_);
    spec_.num_gpus = row_.integer("n_gpus");
    scenarios::ModuleSpec& llm = spec_.modules.emplace_back();
    llm.name = "llm";
    FillModel(llm.model);
    FillLayout(llm.layout, llm.model.num_layers);
    FillWorkload();
    FillSettings(llm.settings);
    FillOptimizer();
    return std::move(spec_);
  }

 private:
  template <typename... Args>
  void Assume(fmt::format_string<Args...> text, Args&&... args) {
    spec_.assumptions.push_back(fmt::format(text, std::forward<Args>(args)...));
  }

  void FillModel(scenarios::ModelSpec& model) {
    model.name = row_.text("model");
    model.source = row_.text("source");
    model.num_layers = *row_.integer("layers");
    model.hidden = *row_.integer("hidden");
    model.ffn_hidden = IntegerOr(row_, "ffn_hidden", 4 * model.hidden);
    if (!row_.integer("ffn_hidden")) Assume("FFN of 4 times the width: not stated");
    model.num_heads = *row_.integer("heads");
    model.num_kv_heads = row_.integer("kv_heads");
    model.head_dim = row_.integer("head_dim");
    model.gated_mlp = MlpOf(row_) == Mlp::kGated;
    model.rotary = !IsGpt(row_);
    Assume("{} MLP and {}, by the model's family", model.gated_mlp ? "gated" : "plain",
           model.rotary ? "rotary positions" : "learned positions");
    model.vocab_size = IntegerOr(row_, "vocab", 51200);
    if (!row_.integer("vocab")) Assume("vocabulary 51200: GPT-2's, padded as Megatron does");
    model.tied_embeddings = IsGpt(row_) || Has(row_.text("overlap_flags"), "tied embeddings");
    Assume("{} embeddings", model.tied_embeddings ? "tied" : "untied");
    if (!IsZeroBubbleFork()) return;
    model.hidden_dropout = 0.1;
    Assume("dropout 0.1: the fork's default");
  }

  // What the zero-bubble paper ran: Megatron-LM without flash attention, with dropout.
  bool IsZeroBubbleFork() const { return Has(row_.text("framework"), "zero-bubble"); }

  void FillLayout(scenarios::LayoutSpec& layout, std::int64_t num_layers) {
    layout.tp = *row_.integer("TP");
    layout.cp = IntegerOr(row_, "CP", 1);
    layout.pp = *row_.integer("PP");
    layout.dp = row_.integer("DP");
    const bool has_short_ends =
        layout.pp > 1 && num_layers % layout.pp != 0 && (num_layers + 2) % layout.pp == 0;
    if (!has_short_ends) return;
    const std::int64_t most = (num_layers + 2) / layout.pp;
    layout.stage_layers.assign(static_cast<std::size_t>(layout.pp), most);
    layout.stage_layers.front() = most - 1;
    layout.stage_layers.back() = most - 1;
    Assume("the first and the last stage have a layer less: the layers divide no other way");
  }

  void FillWorkload() {
    scenarios::WorkloadSpec& workload = spec_.workload;
    workload.sequence_length = *row_.integer("seq_len");
    workload.microbatch_size = IntegerOr(row_, "MBS", 1);
    if (!row_.integer("MBS")) Assume("microbatches of 1 sample: not stated");
    workload.global_batch = row_.integer("GBS");
    if (workload.global_batch) return;
    workload.num_microbatches = 4 * spec_.modules.front().layout.pp;
    Assume("4 microbatches per pipeline stage: not stated, the peak does not depend on it");
  }

  void FillSettings(plan::ModuleSettings& settings) {
    const std::string& recompute = row_.text("recompute");
    if (recompute == "full") settings.recompute = plan::Recompute::kFull;
    if (recompute == "selective") settings.recompute = plan::Recompute::kSelective;
    if (recompute.empty()) Assume("no recomputation: not stated");
    if (row_.text("precision") == "FP16") settings.precision = DType::kFp16;
    if (row_.text("precision").starts_with("FP8")) settings.precision = DType::kFp8;
    if (row_.text("precision").empty()) Assume("bf16: the precision is not stated");
    FillTensorParallel(settings);
    FillGradients(settings);
    FillAttention(settings);
  }

  void FillTensorParallel(plan::ModuleSettings& settings) {
    settings.sequence_parallel = row_.text("seq_parallel") != "no";
    if (*row_.integer("TP") == 1) return;
    if (row_.text("seq_parallel").empty())
      Assume("sequence parallelism on with tp > 1: not stated");
    const bool is_core = IsMegatronCore(row_);
    settings.tp_overlap = !is_core && Has(row_.text("framework"), "Megatron-LM") ? TpOverlap::kBulk
                          : is_core && settings.sequence_parallel ? TpOverlap::kUserBuffers
                          : is_core                               ? TpOverlap::kBulk
                                                                  : TpOverlap::kNone;
    Assume("tp_overlap {}, by the framework", settings.tp_overlap == TpOverlap::kBulk ? "bulk"
                                              : settings.tp_overlap == TpOverlap::kNone
                                                  ? "none"
                                                  : "user_buffers");
  }

  void FillGradients(plan::ModuleSettings& settings) {
    const bool is_recipe = row_.text("framework").starts_with("NeMo") ||
                           Has(row_.text("source"), "DGX Cloud Benchmarking");
    const bool is_said = Has(row_.text("overlap_flags"), "grad_sync bf16");
    const bool is_bf16 = is_said || is_recipe;
    settings.gradient_dtype = is_bf16 ? DType::kBf16 : DType::kFp32;
    if (!is_said) {
      Assume("{} gradients, the default of {}", is_bf16 ? "bf16" : "fp32",
             is_bf16 ? "vendor recipes" : "the framework");
    }
  }

  void FillAttention(plan::ModuleSettings& settings) {
    const std::string& flags = row_.text("overlap_flags");
    const std::string& version = row_.text("framework_version");
    const bool is_before_cudnn = Has(version, "24.07") || Has(version, "24.03");
    const bool has_cudnn = row_.text("gpu") != "A100" && IsMegatronCore(row_) && !is_before_cudnn;
    settings.attention = has_cudnn ? AttentionKernel::kCudnn : AttentionKernel::kFlash2;
    std::string_view reason = "the default of the framework and GPU";
    if (Has(flags, "flash_attentionv1")) settings.attention = AttentionKernel::kFlash1;
    if (Has(flags, "kernel: fused") || Has(flags, "kernel: torch")) {
      settings.attention = AttentionKernel::kUnfused;
    }
    if (Has(flags, "kernel: ")) return;
    const bool is_old =
        Has(row_.text("framework"), "Megatron-LM") && row_.text("source_date") < "2023";
    if (is_old || IsZeroBubbleFork()) {
      settings.attention = AttentionKernel::kUnfused;
      reason = is_old ? "Megatron-LM before flash attention" : "the fork's defaults";
    }
    const char* name = settings.attention == AttentionKernel::kCudnn    ? "cuDNN"
                       : settings.attention == AttentionKernel::kFlash2 ? "FlashAttention-2"
                                                                        : "unfused";
    Assume("{} attention: {}", name, reason);
  }

  void FillOptimizer() {
    const bool overlaps = IsMegatronCore(row_);
    spec_.optimizer.overlap_grad_reduce = overlaps;
    spec_.optimizer.overlap_param_gather = overlaps;
    Assume("distributed optimizer {} overlap of gradients and parameters",
           overlaps ? "with" : "without");
    const std::string task = Lower(row_.text("task"));
    if (Has(task, "sft") || Has(task, "finetune")) {
      Assume("fine-tuning samples fill the sequence: packing is not stated");
    }
  }

  const RunsRow& row_;
  RunsKind kind_;
  scenarios::ScenarioSpec spec_;
};

}  // namespace

RunCase MakeTrainingCase(const RunsRow& row, RunsKind kind) {
  RunCase run{.row_id = row.text("row_id"),
              .table = ToText(kind),
              .gpu = row.text("gpu"),
              .model = row.text("model"),
              .framework = row.text("framework")};
  run.why = WhyNotTraining(row, kind);
  if (run.why.empty()) Measure(row, kind, run);
  if (run.why.empty() && !run.measured_step_time_s && !run.measured_memory_gib) {
    run.why = "neither a step time nor a memory figure";
  }
  if (run.why.empty()) run.spec = TrainingSpec(row, kind).Fill();
  return run;
}

}  // namespace isthmus::studies
