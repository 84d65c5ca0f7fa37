#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "scenarios/scenario.h"
#include "studies/run_case.h"

namespace isthmus::studies {
namespace {

using plan::BackwardMode;
using plan::Recompute;

constexpr std::int64_t kLongContext = std::int64_t{128} * 1024;

enum class Mode : std::uint8_t { kHomogeneous, kColocated, kNonColocated };

std::optional<Mode> ModeOf(const std::string& text) {
  if (text == "homogeneous") return Mode::kHomogeneous;
  if (text == "colocated") return Mode::kColocated;
  if (text == "non-colocated") return Mode::kNonColocated;
  return std::nullopt;
}

// "7.2B" -> "7.2"; nothing for a size that has no model file.
std::optional<std::string> ModelName(std::string_view prefix, const std::string& size,
                                     const scenarios::SearchPaths& search) {
  if (!size.ends_with('B')) return std::nullopt;
  const std::string name = fmt::format("{}-{}b", prefix, size.substr(0, size.size() - 1));
  if (!scenarios::FindShipped(scenarios::FileKind::kModel, name, search)) return std::nullopt;
  return name;
}

// The number that a cell starts with, "5.9 tok/s; 2.7 per-GPU" -> 5.9.
std::optional<double> LeadingNumber(std::string_view cell) {
  if (!cell.empty() && cell.front() == '+') cell.remove_prefix(1);
  const std::size_t end = cell.find_first_not_of("-0123456789.");
  const std::string number(cell.substr(0, end));
  if (number.find_first_of("0123456789") == std::string::npos) return std::nullopt;
  return std::stod(number);
}

// Fills a scenario from a row of tables A2, A3, A4. A strict one is without what was chosen after
// seeing step times.
class PaperSpec {
 public:
  PaperSpec(const RunsRow& row, const std::string& table, Mode mode,
            const scenarios::SearchPaths& search, bool is_strict)
      : row_(row), table_(table), mode_(mode), search_(search), is_strict_(is_strict) {}

  scenarios::ScenarioSpec Fill() {
    spec_.name = row_.text("id");
    spec_.description = fmt::format("{}, {} tokens, {} % vision, {} (arXiv 2605.27678, table {})",
                                    row_.text("workload"), row_.text("context_length"),
                                    row_.text("vision_pct"), row_.text("mode"), table_);
    FillFramework();
    spec_.cluster_preset = "h100-dgx";
    spec_.num_gpus = row_.integer("gpus");
    spec_.workload.sequence_length = *row_.integer("context_length");
    spec_.workload.global_batch = row_.integer("gbs");
    FillMicrobatch();
    FillEncoder();
    FillLlm();
    spec_.optimizer.overlap_grad_reduce = false;
    spec_.optimizer.overlap_param_gather = false;
    Assume("gradients are reduced and parameters gathered without overlap");
    if (table_ == "A3") spec_.step.metric = scenarios::StepMetric::kForwardBackward;
    FillSplit();
    return std::move(spec_);
  }

 private:
  template <typename... Args>
  void Assume(fmt::format_string<Args...> text, Args&&... args) {
    spec_.assumptions.push_back(fmt::format(text, std::forward<Args>(args)...));
  }

  void FillFramework() {
    if (is_strict_) {
      spec_.framework = plan::FindRelease("megatron-core");
      Assume("framework megatron-core: not printed");
      return;
    }
    spec_.framework = plan::FindRelease("megatron-core-library");
    Assume(
        "framework megatron-core-library, dropout 0.1: the authors' public harness makes "
        "TransformerConfig by hand, so that bias, dropout, activation and gradient accumulation "
        "are kernels of their own (chosen_after_seeing_runs)");
  }

  void FillMicrobatch() {
    const bool is_double =
        table_ == "A2" && mode_ == Mode::kHomogeneous && row_.text("llm_size") == "14B";
    spec_.workload.microbatch_size = is_double ? 2 : 1;
    Assume("microbatches of {}: not printed, read off the memory column",
           is_double ? "2 samples" : "1 sample");
  }

  void FillEncoder() {
    scenarios::ModuleSpec& encoder = spec_.modules.emplace_back();
    encoder.name = "vision";
    encoder.model_preset = *ModelName("vit", row_.text("encoder_size"), search_);
    encoder.vision_fraction = *row_.number("vision_pct") / 100.0;
    FillImages(encoder);
    encoder.inherits_layout = mode_ == Mode::kHomogeneous;
    if (!encoder.inherits_layout) {
      encoder.layout.tp = *row_.integer("enc_tp");
      encoder.layout.dp = row_.integer("enc_dp");
    }
    if (mode_ == Mode::kNonColocated) encoder.layout.first_rank = LlmRanks();
    plan::ModuleSettings& settings = encoder.settings;
    FillShared(settings);
    settings.sequence_parallel = false;
    Assume("no sequence parallelism in the encoder: read off the memory column");
    const bool is_recomputed = table_ != "A3" || *row_.integer("context_length") >= kLongContext;
    if (is_recomputed) {
      settings.recompute = Recompute::kFull;
      Assume("the encoder is recomputed in full: read off the memory column");
      if (!is_strict_) {
        settings.backward = BackwardMode::kAbsent;
        Assume("the encoder's backward does not run (chosen_after_seeing_runs)");
      }
    } else {
      Assume("the encoder is not recomputed: read off the memory column");
    }
    FillInstances(encoder);
  }

  // 768 tokens are those of the authors' 3B + 70B runs; an image is never cut.
  void FillImages(scenarios::ModuleSpec& encoder) {
    constexpr std::int64_t kUsual = 1024;
    constexpr std::int64_t kSmall = 768;
    const std::int64_t vision_tokens = std::llround(
        *encoder.vision_fraction * static_cast<double>(spec_.workload.sequence_length));
    const bool is_small = row_.text("encoder_size") == "3B" && row_.text("llm_size") == "70B" &&
                          vision_tokens % kSmall == 0;
    encoder.tokens_per_image = is_small ? kSmall : kUsual;
    Assume("images of {} tokens: not printed", *encoder.tokens_per_image);
  }

  void FillInstances(scenarios::ModuleSpec& encoder) {
    const auto instances = LeadingNumber(row_.text("enc_opt_instances"));
    if (instances) encoder.settings.optimizer_instances = static_cast<int>(std::lround(*instances));
    if (mode_ == Mode::kColocated && *row_.integer("llm_pp") > 1) {
      encoder.settings.offload_parameters = true;
      Assume("encoder parameters lie on the host during the LLM's phase");
    }
  }

  void FillLlm() {
    scenarios::ModuleSpec& llm = spec_.modules.emplace_back();
    llm.name = "llm";
    llm.model_preset = *ModelName("llm", row_.text("llm_size"), search_);
    llm.layout.tp = *row_.integer("llm_tp");
    llm.layout.cp = *row_.integer("llm_cp");
    llm.layout.pp = *row_.integer("llm_pp");
    llm.layout.dp = row_.integer("llm_dp");
    FillShared(llm.settings);
    if (llm.layout.cp > 1 && !is_strict_) {
      llm.settings.cp_attention = plan::CpAttention::kVariableLength;
      Assume(
          "the ring's attention is called for spans of variable length: packed samples "
          "(chosen_after_seeing_runs)");
    }
    Assume("tp_overlap bulk, bf16 gradients, cuDNN attention: not printed");
  }

  void FillShared(plan::ModuleSettings& settings) {
    settings = plan::DefaultSettings(*spec_.framework);
    settings.tp_overlap = plan::TpOverlap::kBulk;
    settings.gradient_dtype = plan::DType::kBf16;
    settings.attention = plan::AttentionKernel::kCudnn;
  }

  void FillSplit() {
    scenarios::LayoutSpec& layout = spec_.modules.back().layout;
    if (layout.pp == 1) return;
    if (mode_ == Mode::kHomogeneous && spec_.workload.sequence_length <= 8192) {
      Assume("layers split evenly over the stages: the homogeneous rows at 8K");
      return;
    }
    layout.split = scenarios::LayerSplit::kSearch;
    Assume("layers per stage balanced, encoder and head counted");
  }

  std::int64_t LlmRanks() const {
    return *row_.integer("llm_tp") * *row_.integer("llm_cp") * *row_.integer("llm_pp") *
           *row_.integer("llm_dp");
  }

  const RunsRow& row_;
  const std::string& table_;
  Mode mode_;
  const scenarios::SearchPaths& search_;
  bool is_strict_;
  scenarios::ScenarioSpec spec_;
};

// The same text: the same ranks, degrees, context and batch in the same mode.
std::string LayoutOf(const RunsRow& row) {
  std::string text = fmt::format("{} {}", row.text("mode"), row.text("llm_size"));
  for (const char* column : {"context_length", "gpus", "gbs", "enc_tp", "enc_dp", "llm_tp",
                             "llm_cp", "llm_pp", "llm_dp"}) {
    text += fmt::format(" {} {}", column, row.text(column));
  }
  return text;
}

std::string WhyNot(const RunsRow& row, const std::string& table,
                   const scenarios::SearchPaths& search) {
  if (table != "A2" && table != "A3" && table != "A4") {
    return "settings are known of the paper's tables A2, A3 and A4 only";
  }
  if (!ModeOf(row.text("mode"))) return fmt::format("mode {} is not known", row.text("mode"));
  std::vector<std::string> missing;
  for (const char* column : {"context_length", "gpus", "gbs", "enc_tp", "enc_dp", "llm_tp",
                             "llm_cp", "llm_pp", "llm_dp"}) {
    if (!row.integer(column)) missing.emplace_back(column);
  }
  if (!row.number("vision_pct")) missing.emplace_back("vision_pct");
  if (!missing.empty()) return fmt::format("not printed: {}", fmt::join(missing, ", "));
  if (!ModelName("vit", row.text("encoder_size"), search) ||
      !ModelName("llm", row.text("llm_size"), search)) {
    return fmt::format("no model of size {} or {}", row.text("encoder_size"), row.text("llm_size"));
  }
  return {};
}

}  // namespace

RunCase MakePaperCase(const RunsRow& row, const scenarios::SearchPaths& search) {
  const std::string& id = row.text("id");
  const std::size_t first_dot = id.find('.');
  const std::size_t last_dot = id.rfind('.');
  RunCase run{.row_id = id,
              .table = id.substr(0, first_dot),
              .gpu = "H100",
              .model = row.text("workload"),
              .framework = "Megatron (multimodal)"};
  run.why = WhyNot(row, run.table, search);
  if (!run.why.empty()) return run;
  const Mode mode = *ModeOf(row.text("mode"));
  if (last_dot != std::string::npos && last_dot > first_dot) {
    run.workload = id.substr(0, last_dot);
    run.mode = id.substr(last_dot + 1);
  }
  constexpr double kMillisecond = 1e-3;
  const auto time_ms = row.number(run.table == "A3" ? "fb_ms" : "step_ms");
  if (time_ms) run.measured_step_time_s = *time_ms * kMillisecond;
  if (const auto gigabytes = row.number("memory_gb"))
    run.measured_memory_gib = *gigabytes * 1e9 / kGiB;
  run.measured_gain_pct = LeadingNumber(row.text("gain_tokens_pct"));
  if (!run.measured_gain_pct) {
    run.measured_gain_pct = LeadingNumber(row.text("gain_recomputed_from_time_pct"));
  }
  run.release = "paper";
  run.precision = "BF16";
  run.layout = LayoutOf(row);
  run.recipe = fmt::format("{} {} {}", run.table, run.model, run.layout);
  run.spec = PaperSpec(row, run.table, mode, search, false).Fill();
  run.strict_spec = PaperSpec(row, run.table, mode, search, true).Fill();
  return run;
}

RunCase MakeCase(const RunsRow& row, RunsKind kind, const scenarios::SearchPaths& search) {
  return kind == RunsKind::kPaperRuns ? MakePaperCase(row, search) : MakeTrainingCase(row, kind);
}

}  // namespace isthmus::studies
