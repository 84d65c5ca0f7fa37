#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <gtest/gtest.h>

#include "backend/torch/modules/chunk.h"
#include "tests/support/small_jobs.h"
#include "tests/unit/backend_torch/chunk_run.h"
#include "tests/unit/backend_torch/small_data.h"
#include "tests/unit/backend_torch/small_models.h"

namespace isthmus::tests {
namespace {

class SilentBackend final : public c10d::Backend {
 public:
  using c10d::Backend::Backend;
};

/// Groups that nobody talks over.
class SilentFactory final : public backend::BackendFactory {
 public:
  c10::intrusive_ptr<c10d::Backend> Make(const c10::intrusive_ptr<c10d::Store>&, int index,
                                         int size) override {
    return c10::make_intrusive<SilentBackend>(index, size);
  }
};

std::int64_t Elements(const std::vector<backend::Parameter*>& parameters) {
  std::int64_t elements = 0;
  for (const backend::Parameter* parameter : parameters) elements += parameter->num_elements();
  return elements;
}

TEST(Parameters, BucketsHaveAsManyAsThePlanSays) {
  for (const plan::Job& job : SmallJobs()) {
    const plan::Program program = plan::Build(job);
    for (int number = 0; number < program.num_ranks; ++number) {
      const base::Rank rank{number};
      SilentFactory factory;
      backend::Communicators communicators(program, rank, c10::make_intrusive<c10d::HashStore>(),
                                           factory);
      for (const plan::ModuleStage& at : program.role(rank).stages) {
        const plan::PlacedModule& placed = program.modules[at.module];
        const int pp = placed.grid.size(plan::Axis::kPp);
        std::int64_t held = 0;
        for (int chunk = 0; chunk < placed.num_chunks(); ++chunk) {
          const int virtual_stage = chunk * pp + at.stage;
          const auto made = backend::MakeChunk(
              program, {.module = at.module, .virtual_stage = virtual_stage, .rank = rank},
              communicators);
          const auto& buckets = placed.contents[std::size_t(virtual_stage)].buckets;
          for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
            EXPECT_EQ(Elements(made->ParametersOf(bucket)), buckets[bucket].parameters)
                << job.name << " " << placed.module.name << " " << virtual_stage;
            held += buckets[bucket].parameters;
          }
          held += Elements(made->FrozenParameters());
        }
        EXPECT_EQ(held, placed.rank_parameters[at.stage]) << job.name;
      }
    }
  }
}

ChunkResult RunDecoder(const plan::Module& module) {
  ChunkRequest request{.data = [](base::Rank) { return DecoderData(); }};
  request.boundary = {Values({3, 32}, 0.9)};
  return RunChunk(plan::Build(TinyJob({module})), request);
}

TEST(Parameters, InitialValuesAreTheSameInEveryLayout) {
  const auto weights = [](const plan::Layout& layout) {
    plan::Module gpt = TinyGpt(layout);
    gpt.transformer.num_kv_heads = 4;
    return RunDecoder(gpt).weights;
  };
  const NamedTensors alone = weights({});
  const NamedTensors spread = weights({.tp = 4});
  ASSERT_EQ(alone.size(), spread.size());
  for (const auto& [name, weight] : alone) {
    EXPECT_TRUE(at::equal(weight, spread.at(name))) << name;
  }
}

TEST(Parameters, InitialValuesHaveTheDeviationAskedFor) {
  // 0.3 for matrices; output layers 0.3 / sqrt(2 · 2 layers) = 0.15. Of n = 2048 values the
  // deviation's own is 1 / sqrt(2n) = 1.6 %: 6 % are almost four of them.
  const NamedTensors weights = RunDecoder(TinyGpt({})).weights;
  const auto deviation = [&](const char* name) { return weights.at(name).std().item<double>(); };
  EXPECT_NEAR(deviation("llm.layers.0.mlp.up"), 0.3, 0.018);
  EXPECT_NEAR(deviation("llm.layers.1.mlp.down"), 0.15, 0.009);
  EXPECT_TRUE(weights.at("llm.final_norm.scale").eq(1.0).all().item<bool>());
  EXPECT_TRUE(weights.at("llm.final_norm.shift").eq(0.0).all().item<bool>());
  EXPECT_FALSE(at::equal(weights.at("llm.layers.0.mlp.up"), weights.at("llm.layers.1.mlp.up")));
}

}  // namespace
}  // namespace isthmus::tests
