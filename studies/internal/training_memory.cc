#include <numeric>
#include <utility>
#include <vector>

#include "plan/model/module.h"
#include "studies/internal/training_row.h"
#include "studies/internal/training_spec.h"

// Settings that decide how much a rank holds, where the row's source tells them.
namespace isthmus::studies::internal {
namespace {

// nanotron: blocks in order, the head last; a stage closes once the running cost passes its share
// of the total (modelling_memory §3). A layer costs its matrices, the head vocabulary times width.
std::vector<std::int64_t> SplitByRunningCost(std::int64_t num_layers, std::int64_t layer_cost,
                                             std::int64_t head_cost, std::int64_t num_stages) {
  const std::int64_t total = num_layers * layer_cost + head_cost;
  std::vector<std::int64_t> layers(static_cast<std::size_t>(num_stages), 0);
  std::int64_t running = 0;
  std::int64_t stage = 0;
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    ++layers[static_cast<std::size_t>(stage)];
    running += layer_cost;
    if (running * num_stages >= total * (stage + 1) && stage + 1 < num_stages) ++stage;
  }
  return layers;
}

}  // namespace

bool TrainingSpec::IsTruncatedLlama() const { return Has(row_.text("source"), "SimuMax"); }

void TrainingSpec::Unless(std::function<void(scenarios::ScenarioSpec&)> change) {
  strict_ = [before = std::exchange(strict_, {}),
             change = std::move(change)](scenarios::ScenarioSpec& spec) {
    if (before) before(spec);
    change(spec);
  };
}

void TrainingSpec::FillTruncatedLlama() {
  plan::ModuleSettings& settings = llm().settings;
  settings.loss = plan::LossKernel::kInPlace;
  Assume("in-place cross entropy: the row's `cef`");
  if (llm().layout.cp > 1) {
    settings.context_parallel = plan::ContextParallel::kAllToAll;
    Assume("context parallelism by exchange of heads: the source's launch scripts");
  }
  constexpr std::int64_t kWide = 16384;
  constexpr std::int64_t kGroupsOfScript = 16;
  if (llm().model.hidden == kWide && llm().model.num_kv_heads != kGroupsOfScript) {
    const auto printed = llm().model.num_kv_heads;
    llm().model.num_kv_heads = kGroupsOfScript;
    Assume("16 key-value heads: the launch script's (chosen_after_seeing_runs)");
    Unless([printed](scenarios::ScenarioSpec& spec) {
      spec.modules.front().model.num_kv_heads = printed;
    });
  }
}

void TrainingSpec::FillRunningCostSplit() {
  scenarios::LayoutSpec& layout = llm().layout;
  if (layout.pp == 1) return;
  const scenarios::ModelSpec& model = llm().model;
  plan::Transformer t;
  t.hidden = model.hidden;
  t.ffn_hidden = model.ffn_hidden;
  t.num_heads = model.num_heads;
  t.num_kv_heads = model.num_kv_heads.value_or(model.num_heads);
  t.head_dim = model.head_dim.value_or(model.hidden / model.num_heads);
  t.gated_mlp = model.gated_mlp;
  layout.stage_layers = SplitByRunningCost(model.num_layers, plan::LayerMatrixParameters(t),
                                           model.vocab_size * model.hidden, layout.pp);
  Assume("layers per stage by running cost, as nanotron splits: {}",
         fmt::join(layout.stage_layers, ", "));
}

void TrainingSpec::FillInterleaving() {
  scenarios::LayoutSpec& layout = llm().layout;
  layout.vpp = (llm().model.num_layers + 2) / layout.pp;
  Assume("vpp {}: one layer a chunk, embedding and head alone at the ends (the row's notes)",
         layout.vpp);
}

void TrainingSpec::FillMemory() {
  if (Has(row_.text("component"), "1F1B-I")) FillInterleaving();
  if (IsTruncatedLlama()) FillTruncatedLlama();
  if (release_.framework->name == "nanotron") FillRunningCostSplit();
  if (release_.framework->name == "llama-eager" && !Has(row_.text("overlap_flags"), "kernel: ")) {
    Assume("FlashAttention-2 without fused norm: no kernel is named (chosen_after_seeing_runs)");
  }
  const bool has_figure = kind_ == RunsKind::kMemoryPoints || !row_.text("peak_mem_gib").empty();
  if (has_figure && release_.framework->memory->keeps_placeholder_gradients) {
    // Recognised from a residual before it was found in the code: without, an earlier release.
    Unless([](scenarios::ScenarioSpec& spec) {
      spec.framework = plan::FindRelease("nemo-24.11");
      spec.modules.front().settings.framework = spec.framework;
    });
  }
  const plan::LossKernel loss = llm().settings.loss;
  const bool is_chosen = MarkOf("loss") == plan::DefaultMark::kChosenAfterSeeingRuns;
  if (is_chosen && loss == release_.framework->defaults.loss) {
    Unless([](scenarios::ScenarioSpec& spec) {
      spec.modules.front().settings.loss = plan::LossKernel::kUnfused;
    });
  }
}

}  // namespace isthmus::studies::internal
