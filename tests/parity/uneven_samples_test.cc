// Samples with different numbers of images and clips: lanes, microbatches and ranks without any
// hold tensors of no rows, and everything is as on one process.

#include <utility>
#include <vector>

#include "backend/torch/data/sample.h"
#include "plan/build/balance_samples.h"
#include "plan/program/program.h"
#include "tests/parity/expect_parity.h"

namespace isthmus::tests {
namespace {

using plan::Placement;

plan::Job Colocated(const plan::Layout& vision, const plan::Layout& llm) {
  return ParityJob(Placement::kColocated, {TinyEncoder("vision", vision), TinyLlm(llm)});
}

plan::Job Apart(const plan::Layout& vision, const plan::Layout& llm) {
  return ParityJob(Placement::kNonColocated, {TinyEncoder("vision", vision), TinyLlm(llm)});
}

// A shard with three images, a text-only sample between them, and one without any.
TEST(ParityOfUnevenSamples, ColocatedFanIn) {
  ExpectParity(WithCounts(Colocated({.dp = 4}, {.tp = 2, .dp = 2}), {2, 0, 1, 0, 0, 0}));
}
TEST(ParityOfUnevenSamples, ColocatedFanOut) {
  ExpectParity(WithCounts(Colocated({.tp = 2, .dp = 2}, {.dp = 4}), {0, 2, 1, 1, 0, 0, 0, 0}));
}
TEST(ParityOfUnevenSamples, ColocatedEqual) {
  ExpectParity(WithCounts(Colocated({.tp = 2, .dp = 2}, {.tp = 2, .dp = 2}), {3, 1, 0, 0}));
}
TEST(ParityOfUnevenSamples, ColocatedCp2) {
  ExpectParity(WithCounts(Colocated({.dp = 4}, {.tp = 2, .cp = 2}), {2, 0, 1}));
}
TEST(ParityOfUnevenSamples, ColocatedCpOnBothSides) {
  ExpectParity(WithCounts(Colocated({.cp = 2, .dp = 2}, {.cp = 2, .dp = 2}), {0, 2, 0, 0}));
}
TEST(ParityOfUnevenSamples, ColocatedPp2) {
  ExpectParity(WithCounts(Colocated({.dp = 4}, {.pp = 2, .dp = 2}), {0, 1, 2, 0, 0, 1}));
}
// No shard of the last lane's has images, and the gradient of stage 0 goes to the ranks of stage 1.
TEST(ParityOfUnevenSamples, ColocatedFanOutPp2) {
  ExpectParity(WithCounts(Colocated({.tp = 4}, {.pp = 2, .dp = 2}), {0, 0, 2, 1}));
}
TEST(ParityOfUnevenSamples, ColocatedLanesStraddleShards) {
  plan::Job job = Colocated({.tp = 2, .dp = 3}, {.tp = 3, .dp = 2});
  job.modules[1].transformer.num_heads = 6;
  job.modules[1].transformer.num_kv_heads = 6;
  job.modules[1].transformer.ffn_hidden = 48;
  ExpectParity(WithCounts(job, {3, 0, 0, 1}));
}
TEST(ParityOfUnevenSamples, ColocatedProjectorWithTheLlm) {
  plan::Job job = Colocated({.dp = 4}, {.tp = 2, .dp = 2});
  job.modules[0].llm_tokens_per_sample = 4;
  job.modules[0].projector->place = plan::Projector::Place::kWithLlm;
  ExpectParity(WithCounts(job, {2, 0, 0, 1}));
}
TEST(ParityOfUnevenSamples, ColocatedWithFullRecompute) {
  plan::Job job = Colocated({.dp = 4}, {.tp = 2, .dp = 2});
  job.modules[0].settings.recompute = plan::Recompute::kFull;
  job.modules[1].settings.recompute = plan::Recompute::kFull;
  ExpectParity(WithCounts(job, {2, 0, 0, 1}));
}

// Text alone in the middle.
TEST(ParityOfUnevenSamples, ApartWithATextOnlyMicrobatch) {
  ExpectParity(WithCounts(Apart({.tp = 2}, {.tp = 2}), {2, 0, 1}));
}
TEST(ParityOfUnevenSamples, ApartFanIn) {
  ExpectParity(WithCounts(Apart({.dp = 4}, {.tp = 2, .dp = 2}), {1, 0, 2, 0, 0, 3}));
}
TEST(ParityOfUnevenSamples, ApartFanOut) {
  ExpectParity(WithCounts(Apart({.tp = 2}, {.tp = 2, .dp = 2}), {1, 0, 2, 0, 0, 3}));
}
// Of the second lane, and of the second shard, no microbatch has images.
TEST(ParityOfUnevenSamples, ApartWithRanksThatNeverGetImages) {
  ExpectParity(WithCounts(Apart({.dp = 2}, {.dp = 2}), {2, 0, 1, 0, 0, 0}));
}
TEST(ParityOfUnevenSamples, ApartCp2) {
  ExpectParity(WithCounts(Apart({.tp = 2}, {.tp = 2, .cp = 2}), {2, 0, 1}));
}
TEST(ParityOfUnevenSamples, ApartEncoderPp2LlmPp2) {
  ExpectParity(WithCounts(Apart({.pp = 2}, {.pp = 2}), {1, 0, 2, 1}));
}
TEST(ParityOfUnevenSamples, ApartUnevenLanesOfTwoSamplesAMicrobatch) {
  plan::Job job = Apart({.dp = 3}, {.tp = 2, .dp = 2});
  job.workload.microbatch_size = 2;
  ExpectParity(WithCounts(job, {3, 0, 0, 0, 1, 2, 0, 0}));
}
TEST(ParityOfUnevenSamples, ApartProjectorWithTheLlm) {
  plan::Job job = Apart({.dp = 2}, {.tp = 2});
  job.modules[0].projector->place = plan::Projector::Place::kWithLlm;
  ExpectParity(WithCounts(job, {2, 0, 1}));
}

TEST(ParityOfUnevenSamples, HomogeneousPp2Dp2) {
  const plan::Job job =
      ParityJob(Placement::kHomogeneous, {TinyEncoder("vision"), TinyLlm({.pp = 2, .dp = 2})});
  ExpectParity(WithCounts(job, {1, 0, 2, 0, 0, 3}));
}
TEST(ParityOfUnevenSamples, HomogeneousTp2Cp2OfTwoSamplesAMicrobatch) {
  plan::Job job =
      ParityJob(Placement::kHomogeneous, {TinyEncoder("vision"), TinyLlm({.tp = 2, .cp = 2})});
  job.workload.microbatch_size = 2;
  ExpectParity(WithCounts(job, {0, 2, 0, 0}));
}

// Images and clips are not in the same samples.
TEST(ParityOfUnevenSamples, ColocatedTwoEncoders) {
  const plan::Job job = ParityJob(Placement::kColocated,
                                  {TinyEncoder("vision", {.dp = 4}), TinySound({.tp = 2, .dp = 2}),
                                   TinyLlm({.tp = 2, .dp = 2})});
  ExpectParity(WithCounts(WithCounts(job, {2, 0, 0, 1}), {0, 0, 2, 1}, 1));
}
TEST(ParityOfUnevenSamples, ApartTwoEncoders) {
  const plan::Job job = ParityJob(Placement::kNonColocated, {TinyEncoder("vision", {.dp = 2}),
                                                             TinySound({}), TinyLlm({.pp = 2})});
  ExpectParity(WithCounts(WithCounts(job, {2, 0, 0, 1}), {0, 0, 2, 1}, 1));
}

TEST(ParityOfUnevenSamples, RandomTokensAndPatches) {
  ExpectParity({.job = WithCounts(Colocated({.dp = 4}, {.tp = 2, .dp = 2}), {2, 0, 0, 3}),
                .training = ParityTraining(),
                .task = "random"});
}

// Moved between data parallel ranks and microbatches: the same global batch, so the same training
// as on one process, which takes the samples as they were drawn.
void ExpectParityBalanced(plan::Job job, const std::vector<std::int32_t>& counts) {
  job = WithCounts(std::move(job), counts);
  plan::BalanceSamples(job);
  EXPECT_FALSE(job.workload.sample_order.empty());
  EXPECT_NE(job.modules[0].spans_of_sample, counts);
  EXPECT_EQ(backend::ShapeOfSamples(plan::Build(job)).encoders[0].spans_of_sample, counts);
  ExpectParity({.job = job, .training = ParityTraining(), .num_steps = 4});
}
TEST(ParityOfUnevenSamples, ColocatedBalanced) {
  ExpectParityBalanced(Colocated({.dp = 4}, {.tp = 2, .dp = 2}), {2, 1, 1, 0, 0, 0});
}
TEST(ParityOfUnevenSamples, ApartBalancedOfTwoSamplesAMicrobatch) {
  plan::Job job = Apart({.dp = 3}, {.tp = 2, .dp = 2});
  job.workload.microbatch_size = 2;
  ExpectParityBalanced(job, {3, 2, 0, 1, 0, 1, 0, 0});
}
TEST(ParityOfUnevenSamples, HomogeneousBalanced) {
  const plan::Job job =
      ParityJob(Placement::kHomogeneous, {TinyEncoder("vision"), TinyLlm({.pp = 2, .dp = 2})});
  ExpectParityBalanced(job, {2, 0, 3, 0, 0, 1});
}

}  // namespace
}  // namespace isthmus::tests
