#include "sim/memory/stage_memory.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "plan/schedule/interleaved.h"
#include "sim/memory/ledger.h"
#include "tests/support/model_catalogue.h"

namespace isthmus::sim {
namespace {

using Random = base::RandomStream;

template <typename T, std::size_t kCount>
T Any(Random& random, const std::array<T, kCount>& choices) {
  return choices[static_cast<std::size_t>(
      random.UniformInt(0, static_cast<std::int64_t>(kCount) - 1))];
}

void RandomSettings(Random& random, plan::Module& llm) {
  const auto releases = plan::FrameworkReleases();
  const auto& release = releases[static_cast<std::size_t>(
      random.UniformInt(0, static_cast<std::int64_t>(releases.size()) - 1))];
  llm.settings = plan::DefaultSettings(release);
  plan::ModuleSettings& settings = llm.settings;
  settings.sequence_parallel = random.Chance(0.7);
  settings.recompute = Any(random, std::array{plan::Recompute::kNone, plan::Recompute::kSelective,
                                              plan::Recompute::kFull});
  if (settings.recompute == plan::Recompute::kFull && random.Chance(0.5)) {
    settings.recompute_layers = 1;
  }
  settings.precision =
      Any(random, std::array{plan::DType::kBf16, plan::DType::kFp16, plan::DType::kFp32});
  if (release.memory->saved_fp8 != nullptr && random.Chance(0.3)) {
    settings.precision = plan::DType::kFp8;
    settings.fp8_primary_weights = random.Chance(0.5);
  }
  settings.gradient_dtype = Any(random, std::array{plan::DType::kBf16, plan::DType::kFp32});
  settings.attention =
      Any(random, std::array{plan::AttentionKernel::kFlash2, plan::AttentionKernel::kUnfused});
  settings.loss = static_cast<plan::LossKernel>(random.UniformInt(0, 6));
  settings.context_parallel =
      Any(random, std::array{plan::ContextParallel::kRing, plan::ContextParallel::kAllToAll,
                             plan::ContextParallel::kAllGather});
  if (random.Chance(0.5)) llm.transformer.hidden_dropout = 0.1;
}

plan::Job RandomUniformJob(std::uint64_t seed) {
  Random random(seed, "uniform job");
  const plan::Layout layout{.tp = Any(random, std::array{1, 2, 4}),
                            .cp = Any(random, std::array{1, 2}),
                            .pp = Any(random, std::array{1, 2, 3, 4}),
                            .dp = Any(random, std::array{1, 2, 4})};
  plan::Job job;
  job.name = fmt::format("uniform {}", seed);
  const bool gated = random.Chance(0.5);
  const int chunks = layout.pp > 2 && random.Chance(0.4) ? 2 : 1;
  const int layers = layout.pp * chunks * static_cast<int>(random.UniformInt(1, 3));
  plan::Module llm = gated ? tests::Llama("llm", layers, 1024, 2816, 16, 8)
                           : tests::Gpt("llm", layers, 1024, 16, 50257);
  llm.transformer.tied_embeddings = random.Chance(0.5);
  RandomSettings(random, llm);
  llm.layout = layout;
  llm.layout->vpp = chunks;
  job.num_ranks = layout.num_ranks();
  job.modules = {llm};
  const std::int64_t microbatches = random.UniformInt(1, 24);
  const std::int64_t samples = Any(random, std::array<std::int64_t, 3>{1, 2, 3});
  job.workload = {.sequence_length = 512,
                  .global_batch = microbatches * samples * layout.dp,
                  .microbatch_size = samples};
  if (random.Chance(0.3)) job.schedule.protocol = plan::MessageProtocol::kShapeThenPayload;
  job.schedule.block_layers = random.Chance(0.3) ? 1 : 0;
  job.optimizer.overlap_grad_reduce = random.Chance(0.5);
  job.optimizer.overlap_param_gather = random.Chance(0.5);
  job.optimizer.bucket_parameters = Any(random, std::array<std::int64_t, 2>{0, 5'000'000});
  return job;
}

// What a search asks and what the built program's ledger says are one figure, made of the same
// parts at the same moment, on every stage.
TEST(StageMemoryTest, EqualsTheLedgerToTheByte) {
  const MemoryFacts facts{.workspace_bytes = 107374182,
                          .reserved_factor = 1.01,
                          .reserved_constant_bytes = 644245094,
                          .context_bytes = 536870912,
                          .nccl_bytes_per_communicator = 644245094,
                          .capacity_bytes = 84986665370,
                          .verdict_margin = 0.015};
  std::set<std::string> phases;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const plan::Job job = RandomUniformJob(seed);
    if (!plan::CanInterleave(job.modules.front().layout->pp, job.modules.front().layout->vpp,
                             static_cast<int>(job.num_microbatches()))) {
      continue;
    }
    const auto closed = PredictStageMemory(job, facts);
    ASSERT_TRUE(closed) << job.name;
    for (const RankMemory& kind : PredictMemory(plan::Build(job), facts)) {
      const plan::Layout& layout = *job.modules.front().layout;
      const auto stage =
          static_cast<std::size_t>(kind.ranks.front().value() / (layout.num_ranks() / layout.pp));
      const traces::MemoryPeak& peak = (*closed)[stage];
      const std::string what = fmt::format("seed {} stage {} at {}", seed, stage, kind.peak.moment);
      EXPECT_EQ(peak.peak_bytes, kind.peak.peak_bytes) << what << ", " << peak.phase;
      EXPECT_EQ(peak.categories, kind.peak.categories) << what;
      EXPECT_EQ(peak.device_bytes, kind.peak.device_bytes) << what;
      EXPECT_EQ(peak.verdict, kind.peak.verdict) << what;
      EXPECT_EQ(peak.phase, kind.peak.phase) << what;
      phases.insert(peak.phase);
    }
    if (HasFailure()) return;
  }
  // The jobs reach every moment that such a model has.
  for (const char* phase : {"turn", "loss", "recompute"}) EXPECT_TRUE(phases.contains(phase));
}

// A frozen module, an absent backward, deferred gradients of the head and an encoder are not
// covered, and it says so.
TEST(StageMemoryTest, CoversOneTrainedModule) {
  const plan::Job covered = RandomUniformJob(1);
  EXPECT_TRUE(PredictStageMemory(covered, {}));
  plan::Job job = covered;
  job.modules.front().settings.frozen = true;
  EXPECT_FALSE(PredictStageMemory(job, {}));
  job = covered;
  job.modules.front().settings.backward = plan::BackwardMode::kAbsent;
  EXPECT_FALSE(PredictStageMemory(job, {}));
  job = covered;
  job.schedule.defer_embedding_wgrad = 2;
  EXPECT_FALSE(PredictStageMemory(job, {}));
  job = covered;
  job.modules.push_back(tests::Encoder("vision", 2, 256, 4));
  EXPECT_FALSE(PredictStageMemory(job, {}));
}

}  // namespace
}  // namespace isthmus::sim
