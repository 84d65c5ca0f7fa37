#include "studies/internal/training_spec.h"

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "studies/internal/training_row.h"

namespace isthmus::studies::internal {
namespace {

// "defer_embedding_wgrad(22)", or the switch alone, on or off.
struct Deferral {
  bool is_on = false;
  std::optional<int> limit;
};
// Nothing where the row says nothing of it.
std::optional<Deferral> DeferralOf(const RunsRow& row) {
  constexpr std::string_view kName = "defer_embedding_wgrad";
  const std::string flags = Lower(row.text("overlap_flags"));
  const std::size_t at = flags.find(kName);
  if (at == std::string::npos) return {};
  const std::string_view rest = std::string_view(flags).substr(at + kName.size());
  if (rest.starts_with("_compute=false")) return Deferral{};
  Deferral deferral{.is_on = true, .limit = std::nullopt};
  int limit = 0;
  if (rest.starts_with("(") &&
      std::from_chars(rest.data() + 1, rest.data() + rest.size(), limit).ec == std::errc()) {
    deferral.limit = limit;
  }
  return deferral;
}
// SQuAD's contexts with question and answer, about 250 tokens.
constexpr std::int64_t kPackedDocument = 256;

}  // namespace

void TrainingSpec::Fill(RunCase& run) {
  spec_.name = row_.text("row_id");
  spec_.description = fmt::format("{} on {} {} GPUs ({})", row_.text("model"), row_.text("n_gpus"),
                                  row_.text("gpu"), row_.text("source"));
  spec_.cluster_preset = *ClusterOf(row_);
  spec_.num_gpus = row_.integer("n_gpus");
  spec_.framework = release_.framework;
  Assume("framework {}: {}", release_.framework->name,
         release_.is_stated ? fmt::format("the row's {}", release_.name) : "not stated");
  llm().name = "llm";
  llm().settings = plan::DefaultSettings(*release_.framework);
  FillModel(llm().model);
  FillLayout();
  FillWorkload();
  FillSettings(llm().settings);
  FillMemory();
  FillOptimizer();
  run.release = release_.name;
  run.precision = row_.text("precision").empty() ? "BF16" : row_.text("precision");
  Name(run);
  run.alternatives = AlternativesOf(spec_, open_);
  if (strict_) {
    run.strict_spec = spec_;
    strict_(*run.strict_spec);
  }
  run.spec = std::move(spec_);
}

void TrainingSpec::FillModel(scenarios::ModelSpec& model) {
  model.name = row_.text("model");
  model.source = row_.text("source");
  model.num_layers = *row_.integer("layers");
  model.hidden = *row_.integer("hidden");
  model.ffn_hidden = IntegerOr(row_, "ffn_hidden", 4 * model.hidden);
  if (!row_.integer("ffn_hidden")) Assume("FFN of 4 times the width: not stated");
  model.num_heads = *row_.integer("heads");
  model.num_kv_heads = row_.integer("kv_heads");
  model.head_dim = row_.integer("head_dim");
  const Mlp mlp = MlpOf(row_);
  // Gated MLPs are made narrower than four times the width, to keep their parameters.
  model.gated_mlp =
      mlp == Mlp::kGated || (mlp == Mlp::kUnknown && model.ffn_hidden != 4 * model.hidden);
  if (mlp == Mlp::kUnknown) Assume("whether the MLP is gated is told by its width only");
  model.rotary = !IsGpt(row_);
  Assume("{} MLP and {}, by the model's family", model.gated_mlp ? "gated" : "plain",
         model.rotary ? "rotary positions" : "learned positions");
  model.qk_norm = Has(Lower(row_.text("model")), "qwen3");
  if (model.qk_norm) Assume("QK-norm, by the model's family");
  model.vocab_size = IntegerOr(row_, "vocab", 51200);
  if (!row_.integer("vocab")) Assume("vocabulary 51200: GPT-2's, padded as Megatron does");
  model.tied_embeddings = IsGpt(row_) || Has(row_.text("overlap_flags"), "tied embeddings");
  Assume("{} embeddings", model.tied_embeddings ? "tied" : "untied");
  if (!Has(row_.text("framework"), "zero-bubble")) return;
  model.hidden_dropout = 0.1;
  Assume("dropout 0.1: the fork's default");
}

void TrainingSpec::FillDeferral() {
  const std::optional<Deferral> stated = DeferralOf(row_);
  int& deferred = spec_.schedule.defer_embedding_wgrad;
  if (stated) {
    if (!stated->is_on) return;
    deferred = stated->limit.value_or(plan::kRecipeDeferral);
    if (!stated->limit) {
      Assume("embedding gradients of {} microbatches wait: the recipes' limit",
             plan::kRecipeDeferral);
    }
    return;
  }
  deferred = release_.framework->defaults.defer_embedding_wgrad;
  if (deferred == 0) return;
  AssumeDefault("defer_embedding_wgrad", fmt::format("{}", deferred));
  OpenScenario("defer_embedding_wgrad", "no deferred embedding gradients",
               [](scenarios::ScenarioSpec& open) { open.schedule.defer_embedding_wgrad = 0; });
}

std::int64_t TrainingSpec::Degree(const char* column) {
  const auto degree = row_.integer(column);
  if (!degree && !row_.table().Find(column)) Assume("{} 1: the file has no such column", column);
  return degree.value_or(1);
}

void TrainingSpec::FillLayout() {
  scenarios::LayoutSpec& layout = llm().layout;
  layout.tp = Degree("TP");
  layout.cp = IntegerOr(row_, "CP", 1);
  layout.pp = Degree("PP");
  layout.vpp = IntegerOr(row_, "VPP", 1);
  layout.dp = row_.integer("DP");
  const std::int64_t num_layers = llm().model.num_layers;
  const std::int64_t stages = layout.pp * layout.vpp;
  const bool has_short_ends = plan::HasShortEnds(num_layers, stages);
  if (has_short_ends) {
    Assume("the first and the last stage have a layer less: the layers divide no other way");
  }
  if (layout.pp > 1) FillDeferral();
  const bool is_open = layout.pp > 1 && !row_.integer("VPP") && !has_short_ends &&
                       kind_ == RunsKind::kTrainingRuns && Interleaves();
  if (is_open && num_layers / layout.pp > 1) OpenStages(num_layers / layout.pp);
}

bool TrainingSpec::Interleaves() const { return release_.framework->has_interleaving; }

void TrainingSpec::OpenStages(std::int64_t most) {
  Assume("vpp is not stated: the midpoint between 1 and {} is the prediction", most);
  open_.push_back(
      {fmt::format("vpp {}", most), AlternativeUse::kMidpoint,
       [most](scenarios::ScenarioSpec& spec) { spec.modules.front().layout.vpp = most; }});
}

std::optional<std::int64_t> TrainingSpec::SamplesPerCopy() {
  const scenarios::LayoutSpec& layout = llm().layout;
  const std::int64_t ranks = layout.tp * layout.cp * layout.pp;
  const std::int64_t dp = layout.dp.value_or(*spec_.num_gpus / ranks);
  if (!spec_.workload.global_batch || dp < 1) return std::nullopt;
  return *spec_.workload.global_batch / dp;
}

void TrainingSpec::FillWorkload() {
  scenarios::WorkloadSpec& workload = spec_.workload;
  workload.sequence_length = *row_.integer("seq_len");
  workload.global_batch = row_.integer("GBS");
  workload.microbatch_size = IntegerOr(row_, "MBS", 1);
  const std::string task = Lower(row_.text("task"));
  if (Has(task, "sft") || Has(task, "finetune")) FillPacking(workload);
  if (!row_.integer("MBS")) FillMicrobatch(workload);
  if (workload.global_batch) return;
  workload.num_microbatches = 4 * llm().layout.pp;
  Assume("4 microbatches per pipeline stage: not stated, the peak does not depend on it");
}

void TrainingSpec::FillPacking(scenarios::WorkloadSpec& workload) {
  const std::string_view framework = release_.framework->name;
  const bool is_recipe = framework.starts_with("nemo") || framework.starts_with("megatron-bridge");
  if (!is_recipe || workload.sequence_length <= kPackedDocument) {
    Assume("fine-tuning samples fill the sequence: packing is not stated");
    return;
  }
  workload.document_tokens = kPackedDocument;
  Assume(
      "sequences packed of documents of {} tokens: vendor recipes fine-tune on SQuAD, packed "
      "(chosen_after_seeing_runs)",
      kPackedDocument);
  const auto fill = [](scenarios::ScenarioSpec& spec) { spec.workload.document_tokens.reset(); };
  open_.push_back({"samples that fill the sequence", AlternativeUse::kOpen, fill});
  Unless(fill);
}

void TrainingSpec::FillMicrobatch(scenarios::WorkloadSpec& workload) {
  const std::optional<std::int64_t> samples = SamplesPerCopy();
  const auto count = row_.integer("grad_accum");
  if (samples && count && *count > 0 && *samples % *count == 0) {
    workload.microbatch_size = *samples / *count;
    Assume("microbatches of {}: the batch over its accumulation steps", *samples / *count);
    return;
  }
  if (workload.document_tokens) {
    Assume("microbatches of 1 sample: packed sequences come one by one");
    return;
  }
  const bool interleaved = llm().layout.vpp > 1;
  const std::int64_t most = samples && kind_ == RunsKind::kTrainingRuns
                                ? LargestMicrobatch(*samples, llm().layout.pp, interleaved)
                                : 1;
  if (most == 1) {
    Assume("microbatches of 1 sample: not stated");
    return;
  }
  Assume("the microbatch is not stated: the midpoint between 1 and {} samples is the prediction",
         most);
  open_.push_back(
      {fmt::format("microbatches of {}", most), AlternativeUse::kMidpoint,
       [most](scenarios::ScenarioSpec& spec) { spec.workload.microbatch_size = most; }});
}

void TrainingSpec::Name(RunCase& run) {
  const scenarios::LayoutSpec& layout = llm().layout;
  const std::string how = fmt::format(
      "tp{} cp{} pp{} vpp{} mbs{} seq {} {} recompute {}", layout.tp, layout.cp, layout.pp,
      layout.vpp, spec_.workload.microbatch_size, spec_.workload.sequence_length, run.precision,
      row_.text("recompute").empty() ? "none" : row_.text("recompute"));
  run.recipe = fmt::format("{} {} {} layers {} {} {}", run.gpu, run.release,
                           *row_.integer("layers"), row_.text("model"), row_.text("task"), how);
  run.layout = fmt::format("{} {} gpus batch {} {} {}", run.gpu, row_.text("n_gpus"),
                           row_.text("GBS"), row_.text("task"), how);
}

}  // namespace isthmus::studies::internal
