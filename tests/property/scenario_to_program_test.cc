// Whatever the loader lets through can be planned, and the program is proven: random settings of
// small scenarios, most of them wrong somewhere, of which those that load must build and validate.

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "plan/program/program.h"
#include "plan/program/validate.h"
#include "scenarios/scenario.h"

namespace isthmus::scenarios {
namespace {

namespace fs = std::filesystem;

// Draws the keys of a scenario. Degrees and settings are drawn without looking at each other.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed, "scenario to program") {}

  ScenarioSpec Make() {
    spec_.cluster_preset = "h100-dgx";
    spec_.profile = "none";
    spec_.workload = {.sequence_length = Of({64, 128, 192, 256})};
    spec_.workload.microbatch_size = Of({1, 1, 2});
    spec_.workload.num_microbatches = Of({1, 2, 3, 4});
    spec_.step.num_steps = Of({1, 1, 2});
    spec_.schedule.block_layers = static_cast<int>(Of({0, 0, 1, 2}));
    spec_.optimizer.overlap_grad_reduce = random_.Chance(0.5);
    spec_.optimizer.overlap_param_gather = random_.Chance(0.5);
    spec_.optimizer.clip_gradients = random_.Chance(0.8);
    spec_.optimizer.bucket_parameters = Of({0, 10'000, 1'000'000});
    const bool is_apart = random_.Chance(0.3);
    for (std::int64_t left = Of({0, 1, 1, 2}); left > 0; --left) AddEncoder(is_apart);
    AddDecoder(is_apart);
    return spec_;
  }

 private:
  std::int64_t Of(std::initializer_list<std::int64_t> values) {
    return random_.Pick(std::span<const std::int64_t>(values.begin(), values.size()));
  }

  void AddModel(ModelSpec& model) {
    model.num_layers = Of({1, 2, 3, 5});
    model.hidden = Of({64, 96});
    model.ffn_hidden = 4 * model.hidden;
    model.num_heads = Of({4, 8});
    if (random_.Chance(0.3)) model.num_kv_heads = Of({1, 2, 4});
    model.gated_mlp = random_.Chance(0.3);
    model.rotary = random_.Chance(0.3);
    if (random_.Chance(0.2)) model.hidden_dropout = 0.1;
  }

  void AddLayout(LayoutSpec& layout) {
    layout.tp = Of({1, 1, 2, 4});
    layout.cp = Of({1, 1, 1, 2});
    layout.pp = Of({1, 1, 2, 3});
    layout.dp = Of({1, 2, 3, 4});
    if (random_.Chance(0.5)) layout.order = plan::AxisOrder::kTpCpPpDp;
    layout.first_rank = next_rank_;
  }

  void AddSettings(plan::ModuleSettings& settings) {
    settings.frozen = random_.Chance(0.2);
    settings.sequence_parallel = random_.Chance(0.5);
    settings.recompute = static_cast<plan::Recompute>(Of({0, 1, 2}));
    if (settings.recompute == plan::Recompute::kFull) {
      settings.recompute_layers = static_cast<int>(Of({0, 0, 1}));
    }
    settings.gradient_dtype = random_.Chance(0.5) ? plan::DType::kBf16 : plan::DType::kFp32;
    settings.optimizer_instances = static_cast<int>(Of({1, 1, 1, 2}));
  }

  void AddEncoder(bool is_apart) {
    ModuleSpec& module = spec_.modules.emplace_back();
    module.name = fmt::format("encoder{}", spec_.modules.size());
    AddModel(module.model);
    module.model.kind = random_.Chance(0.7) ? plan::ModuleKind::kVit : plan::ModuleKind::kAudio;
    module.model.input_width = Of({0, 48});
    if (module.model.kind == plan::ModuleKind::kVit) {
      module.tokens_per_image = Of({16, 32});
      module.images_per_sample.fixed = Of({1, 2});
      module.model.pixel_shuffle = Of({1, 1, 2});
    } else {
      module.tokens_per_clip = Of({16, 32});
      module.clips_per_sample.fixed = 1;
    }
    AddSettings(module.settings);
    module.settings.offload_parameters = random_.Chance(0.2);
    if (random_.Chance(0.2)) module.settings.backward = plan::BackwardMode::kAbsent;
    module.projector.num_layers = static_cast<int>(Of({1, 2}));
    module.projector.frozen = random_.Chance(0.2);
    if (random_.Chance(0.2)) module.projector.place = plan::Projector::Place::kWithLlm;
    module.inherits_layout = !is_apart && random_.Chance(0.4);
    AddLayout(module.layout);
    if (is_apart) {
      const LayoutSpec& layout = module.layout;
      next_rank_ += layout.tp * layout.cp * layout.pp * *layout.dp;
    }
  }

  void AddDecoder(bool is_apart) {
    ModuleSpec& module = spec_.modules.emplace_back();
    module.name = "llm";
    AddModel(module.model);
    module.model.kind = plan::ModuleKind::kDecoder;
    module.model.vocab_size = 512;
    module.model.tied_embeddings = random_.Chance(0.5);
    AddSettings(module.settings);
    AddLayout(module.layout);
    const LayoutSpec& llm = module.layout;
    // Encoders on the LLM's ranks take as many lanes as there is room for.
    for (ModuleSpec& encoder : spec_.modules) {
      if (&encoder == &module || is_apart || encoder.inherits_layout) continue;
      encoder.layout.pp = 1;
      encoder.layout.dp =
          llm.tp * llm.cp * llm.pp * *llm.dp / (encoder.layout.tp * encoder.layout.cp);
      if (*encoder.layout.dp == 0) encoder.layout.dp = 1;
    }
  }

  base::RandomStream random_;
  ScenarioSpec spec_;
  std::int64_t next_rank_ = 0;
};

TEST(ScenarioToProgram, WhatLoadsCanBePlanned) {
  constexpr int kCases = 2'000;
  const fs::path root =
      fs::path(::testing::TempDir()) / fmt::format("isthmus-scenarios-{}", getpid());
  fs::create_directories(root / "gpus");
  std::ofstream(root / "gpus" / "none.yaml") << "profile: {name: none}\n";
  const SearchPaths search = DefaultSearchPaths({root});
  int num_planned = 0;
  std::vector<int> planned_by_placement(3);
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const ScenarioSpec spec = Draw(seed).Make();
    plan::Job job;
    try {
      job = ParseScenario(spec, search).job;
    } catch (const base::ScenarioError&) {
      continue;
    }
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, WriteScenario(spec)));
    const plan::Validation validation = plan::Validate(plan::Build(job));
    ASSERT_TRUE(validation.ok()) << validation.problems.front();
    ++num_planned;
    ++planned_by_placement[static_cast<std::size_t>(job.placement)];
  }
  fs::remove_all(root);
  // The draws must reach all placements, else this test says little.
  EXPECT_GT(num_planned, kCases / 20);
  for (const int planned : planned_by_placement) EXPECT_GT(planned, 20);
}

}  // namespace
}  // namespace isthmus::scenarios
