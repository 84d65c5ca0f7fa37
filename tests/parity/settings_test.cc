#include "tests/parity/expect_parity.h"

namespace isthmus::tests {
namespace {

using plan::Placement;

/// Encoder DP4 in front of an LLM TP2 DP2, colocated.
plan::Job Usual() {
  return ParityJob(Placement::kColocated,
                   {TinyEncoder("vision", {.dp = 4}), TinyLlm({.tp = 2, .dp = 2})});
}

plan::ModuleSettings& Vision(plan::Job& job) { return job.modules[0].settings; }
plan::ModuleSettings& Llm(plan::Job& job) { return job.modules[1].settings; }

TEST(ParityOfSettings, FrozenLlmBehindATrainedProjector) {
  plan::Job job = Usual();
  Vision(job).frozen = true;
  Llm(job).frozen = true;
  ExpectParity(job);
}
TEST(ParityOfSettings, FrozenLlmPp2BehindATrainedEncoder) {
  plan::Job job = ParityJob(Placement::kNonColocated,
                            {TinyEncoder("vision", {.dp = 2}), TinyLlm({.tp = 2, .pp = 2})});
  Llm(job).frozen = true;
  ExpectParity(job);
}
TEST(ParityOfSettings, FrozenEncoderAndProjector) {
  plan::Job job = Usual();
  Vision(job).frozen = true;
  job.modules[0].projector->frozen = true;
  ExpectParity(job);
}
TEST(ParityOfSettings, FullRecompute) {
  plan::Job job = Usual();
  Vision(job).recompute = plan::Recompute::kFull;
  Llm(job).recompute = plan::Recompute::kFull;
  ExpectParity(job);
}
TEST(ParityOfSettings, RecomputeOfOneLayerAStage) {
  plan::Job job =
      ParityJob(Placement::kHomogeneous, {TinyEncoder("vision"), TinyLlm({.pp = 2, .dp = 2})});
  Llm(job).recompute = plan::Recompute::kFull;
  Llm(job).recompute_layers = 1;
  ExpectParity(job);
}
TEST(ParityOfSettings, SelectiveRecompute) {
  plan::Job job = Usual();
  Llm(job).recompute = plan::Recompute::kSelective;
  ExpectParity(job);
}
TEST(ParityOfSettings, OffloadOfTheEncoder) {
  plan::Job job = Usual();
  Vision(job).offload_parameters = true;
  ExpectParity(job);
}
TEST(ParityOfSettings, TwoOptimizerInstances) {
  plan::Job job =
      ParityJob(Placement::kColocated, {TinyEncoder("vision", {.dp = 4}), TinyLlm({.dp = 4})});
  Vision(job).optimizer_instances = 2;
  Llm(job).optimizer_instances = 2;
  ExpectParity(job);
}
TEST(ParityOfSettings, DeferredHeadGradient) {
  plan::Job job =
      ParityJob(Placement::kHomogeneous, {TinyEncoder("vision"), TinyLlm({.pp = 2, .dp = 2})});
  job.schedule.defer_embedding_wgrad = 2;
  ExpectParity(job);
}
TEST(ParityOfSettings, KeysAndValuesGatheredOverCp) {
  plan::Job job =
      ParityJob(Placement::kColocated, {TinyEncoder("vision", {.dp = 4}), TinyLlm({.cp = 4})});
  Llm(job).context_parallel = plan::ContextParallel::kAllGather;
  ExpectParity(job);
}
TEST(ParityOfSettings, RingOverCp4OfALlama) {
  ExpectParity(
      ParityJob(Placement::kColocated, {TinyEncoder("vision", {.dp = 4}), TinyLlama({.cp = 4})}));
}
TEST(ParityOfSettings, LlamaWithHeadNorms) {
  plan::Job job = ParityJob(Placement::kColocated,
                            {TinyEncoder("vision", {.dp = 4}), TinyLlama({.tp = 2, .dp = 2})});
  job.modules[1].transformer.qk_norm = true;
  ExpectParity(job);
}
TEST(ParityOfSettings, TiedEmbeddingsOnTwoStages) {
  plan::Job job = ParityJob(Placement::kHomogeneous,
                            {TinyEncoder("vision"), TinyLlm({.tp = 2, .pp = 2, .dp = 2})});
  job.modules[1].transformer.tied_embeddings = true;
  ExpectParity(job);
}
TEST(ParityOfSettings, WithoutSequenceParallelism) {
  plan::Job job = Usual();
  job.modules[0].layout = plan::Layout{.tp = 2, .dp = 2};
  Vision(job).sequence_parallel = false;
  Llm(job).sequence_parallel = false;
  ExpectParity(job);
}
TEST(ParityOfSettings, WithoutOverlapAndClipping) {
  plan::Job job = Usual();
  job.optimizer = {
      .overlap_grad_reduce = false, .overlap_param_gather = false, .clip_gradients = false};
  ExpectParity(job);
}
TEST(ParityOfSettings, ALayerAnOpAndTwoSamplesAMicrobatch) {
  plan::Job job = Usual();
  job.schedule.block_layers = 1;
  job.workload.microbatch_size = 2;
  ExpectParity(job);
}
TEST(ParityOfSettings, PixelShuffleAndAProjectorWithTheLlm) {
  for (const auto place :
       {plan::Projector::Place::kWithEncoder, plan::Projector::Place::kWithLlm}) {
    plan::Job job = Usual();
    job.modules[0].llm_tokens_per_sample = 4;
    job.modules[0].projector->place = place;
    ExpectParity(job);
  }
}
TEST(ParityOfSettings, RandomTokensAndPatches) {
  ExpectParity({.job = Usual(), .training = ParityTraining(), .task = "random"});
}

}  // namespace
}  // namespace isthmus::tests
