#include "studies/internal/training_row.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "plan/model/module.h"

namespace isthmus::studies::internal {

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string Lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](char character) {
    return character >= 'A' && character <= 'Z' ? static_cast<char>(character - 'A' + 'a')
                                                : character;
  });
  return text;
}

std::string Upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](char character) {
    return character >= 'a' && character <= 'z' ? static_cast<char>(character - 'a' + 'A')
                                                : character;
  });
  return text;
}

std::int64_t IntegerOr(const RunsRow& row, std::string_view column, std::int64_t fallback) {
  return row.integer(column).value_or(fallback);
}

std::optional<std::string> ClusterOf(const RunsRow& row) {
  const std::string& gpu = row.text("gpu");
  const std::string& memory = row.text("gpu_mem_gb");
  const auto has = [&](const char* usual) { return memory.empty() || memory == usual; };
  if (gpu == "H100" && has("80")) return "h100-dgx";
  if (gpu == "H200" && has("141")) return "h200-dgx";
  if (gpu == "A100" && has("80")) return "a100-dgx";
  if (gpu == "B200" && has("180")) return "b200-dgx";
  return std::nullopt;
}

Mlp MlpOf(const RunsRow& row) {
  const std::string model = Lower(row.text("model"));
  for (const char* family : {"llama", "qwen", "mistral", "gemma", "phi-", "olmo", "yi-"}) {
    if (Has(model, family)) return Mlp::kGated;
  }
  for (const char* family : {"gpt", "nemotron", "mpt", "opt-", "bloom", "turing"}) {
    if (Has(model, family)) return Mlp::kPlain;
  }
  const auto billions = row.number("params_b");
  if (!billions) return Mlp::kUnknown;
  plan::Transformer t;
  t.num_layers = static_cast<int>(IntegerOr(row, "layers", 0));
  t.hidden = IntegerOr(row, "hidden", 0);
  t.ffn_hidden = IntegerOr(row, "ffn_hidden", 0);
  t.num_heads = IntegerOr(row, "heads", 1);
  t.num_kv_heads = IntegerOr(row, "kv_heads", t.num_heads);
  t.head_dim = IntegerOr(row, "head_dim", t.hidden / t.num_heads);
  t.vocab_size = IntegerOr(row, "vocab", 0);
  const auto distance = [&](bool gated) {
    t.gated_mlp = gated;
    return std::abs(static_cast<double>(plan::TotalParameters(t)) / 1e9 - *billions);
  };
  return distance(true) < distance(false) ? Mlp::kGated : Mlp::kPlain;
}

void CheckCells(const RunsRow& row) {
  for (const char* column :
       {"layers", "hidden", "ffn_hidden", "heads", "kv_heads", "head_dim", "vocab", "n_gpus", "TP",
        "CP", "PP", "VPP", "DP", "MBS", "GBS", "seq_len"}) {
    const auto value = row.integer(column);
    if (value && *value < 1) row.Refuse(column, "a whole number above 0");
  }
  for (const char* column : {"step_time_s", "derived_step_time_s", "peak_mem_gib", "value_gib"}) {
    if (row.text(column).starts_with('>')) continue;  // ran out of memory
    const auto value = row.number(column);
    if (value && *value <= 0) row.Refuse(column, "above 0");
  }
}

bool IsGpt(const RunsRow& row) { return Lower(row.text("model")).starts_with("gpt"); }

namespace {

// What the architecture and the training task need that is not built yet.
std::string WhyNotModel(const RunsRow& row) {
  const std::string task = Lower(row.text("task"));
  const std::string& attention = row.text("attention_type");
  if (IntegerOr(row, "experts", 0) > 0 || IntegerOr(row, "EP", 1) > 1) {
    return "mixture of experts is known but not built yet";
  }
  if (Has(task, "lora") || Has(task, "peft")) return "LoRA is known but not built yet";
  if (Has(task, "multimodal") || Has(row.text("framework"), "MIMO")) {
    return "a multimodal row without the encoder's dimensions";
  }
  if (!attention.empty() && attention != "gqa" && attention != "mha") {
    return fmt::format("attention of type {} is not built", attention);
  }
  if (Has(row.text("framework"), "JAX")) {
    return "JAX programs rematerialise in a way that the row does not state";
  }
  return {};
}

// Words that no default stands for.
std::string WhyNotWords(const RunsRow& row) {
  const std::string recompute = Lower(row.text("recompute"));
  const bool is_known = recompute.empty() || recompute == "null" || recompute == "n/a" ||
                        recompute.starts_with("none") || recompute.starts_with("full") ||
                        recompute.starts_with("selective");
  if (!is_known) return fmt::format("recompute {}: known are none, selective, full", recompute);
  const std::string sequence = Lower(row.text("seq_parallel"));
  if (!sequence.empty() && sequence != "yes" && sequence != "no" && sequence != "n/a") {
    return fmt::format("seq_parallel {}: known are yes, no", sequence);
  }
  return {};
}

// What sharding, precision, machine and schedule need that is not built yet.
std::string WhyNotSetup(const RunsRow& row, RunsKind kind) {
  const std::string sharding = row.text("fsdp_zero") + " " + row.text("framework");
  for (const char* known : {"FSDP", "ZeRO-3", "ZeRO-2", "zero2", "DeepSpeed", "torchtitan"}) {
    if (Has(sharding, known)) return "FSDP and ZeRO-2 or -3 are known but not built yet";
  }
  const bool is_replicated = row.text("dist_opt") == "no" || Has(sharding, "ZeRO-0") ||
                             row.text("fsdp_zero") == "none (DDP)";
  if (is_replicated && IntegerOr(row, "DP", 2) > 1) {
    return "an optimizer whose state every copy holds is known but not built yet";
  }
  const std::string precision = Upper(row.text("precision"));
  const bool has_column = row.table().Find("precision").has_value();
  if (precision.empty() && has_column && kind == RunsKind::kTrainingRuns) {
    return "the precision is not stated";
  }
  const bool is_known = precision.empty() || precision == "BF16" || precision == "FP16" ||
                        precision == "FP8" || precision == "FP8-CS" || precision == "FP8-DS";
  if (!is_known) {
    return fmt::format("precision {} is known but not built yet",
                       precision.substr(0, precision.find(' ')));
  }
  if (!ClusterOf(row)) {
    const std::string& memory = row.text("gpu_mem_gb");
    return fmt::format("no profile of GPU {}{}", row.text("gpu"),
                       memory.empty() ? "" : fmt::format(" with {} GB", memory));
  }
  if (const auto gpus = row.integer("gpus_per_node"); gpus && *gpus != 8) {
    return fmt::format("no cluster with {} GPUs of this type a node", *gpus);
  }
  return {};
}

std::string WhyNotComponent(const RunsRow& row) {
  const std::string& component = row.text("component");
  const std::string& kind = row.text("kind");
  if (Has(kind, "analytic")) return "an analytic figure, not a measurement";
  if (component == "total peak" || component == "total peak, schedule 1F1B" ||
      component == "total peak, schedule 1F1B-I") {
    return {};
  }
  if (component.starts_with("total peak, schedule")) {
    return fmt::format("schedule {} is known but not built yet", component.substr(21));
  }
  return "not the total peak";
}

std::string WhyNotCells(const RunsRow& row, RunsKind kind) {
  std::vector<std::string> missing;
  for (const char* column : {"layers", "hidden", "heads", "seq_len", "n_gpus"}) {
    if (!row.integer(column)) missing.emplace_back(column);
  }
  for (const char* column : {"TP", "PP"}) {  // a file without such a column means degree 1
    if (!row.integer(column) && row.table().Find(column)) missing.emplace_back(column);
  }
  for (const char* column : {"ffn_hidden", "vocab"}) {  // GPT's are usual
    if (!row.integer(column) && !IsGpt(row)) missing.emplace_back(column);
  }
  if (!row.integer("GBS") && kind == RunsKind::kTrainingRuns) missing.emplace_back("GBS");
  if (!missing.empty()) {
    return fmt::format("cells that nothing can fill are empty: {}", fmt::join(missing, ", "));
  }
  return {};
}

}  // namespace

std::string WhyNotTraining(const RunsRow& row, RunsKind kind) {
  if (kind == RunsKind::kMemoryPoints) {
    if (std::string why = WhyNotComponent(row); !why.empty()) return why;
  }
  if (std::string why = WhyNotModel(row); !why.empty()) return why;
  if (std::string why = WhyNotSetup(row, kind); !why.empty()) return why;
  if (std::string why = WhyNotWords(row); !why.empty()) return why;
  return WhyNotCells(row, kind);
}

}  // namespace isthmus::studies::internal
