#pragma once

#include <string>
#include <vector>

#include "plan/job.h"
#include "tests/support/model_catalogue.h"

/// Jobs of at most 16 ranks that between them have every placement, axis order and boundary case.
namespace isthmus::tests {

/// 8 layers, 24 heads of 32. 1,536 tokens per sample.
inline plan::Module SmallLlm(const plan::Layout& layout) {
  plan::Module llm = Gpt("llm", 8, 768, 24, 32000);
  llm.transformer.max_positions = 1536;
  llm.layout = layout;
  return llm;
}

/// 4 layers, 12 heads of 32; 8 images of 96 tokens per sample, and a projector.
inline plan::Module SmallEncoder(std::string name) {
  plan::Module encoder = Encoder(std::move(name), 4, 384, 12);
  encoder.projector = plan::Projector{.num_layers = 2};
  encoder.tokens_per_sample = 768;
  encoder.llm_tokens_per_sample = 768;
  encoder.span_tokens = 96;
  encoder.input_width = 588;
  encoder.transformer.max_positions = 96;
  return encoder;
}

inline plan::Module SmallEncoder(std::string name, const plan::Layout& layout) {
  plan::Module encoder = SmallEncoder(std::move(name));
  encoder.layout = layout;
  return encoder;
}

/// Encoders first, the LLM last; four microbatches of one sample on every data-parallel copy.
inline plan::Job SmallJob(std::string name, plan::Placement placement,
                          std::vector<plan::Module> modules) {
  plan::Job job;
  job.name = std::move(name);
  job.placement = placement;
  const plan::Layout llm = *modules.back().layout;
  for (std::size_t index = 0; index + 1 < modules.size(); ++index) {
    job.edges.push_back({static_cast<int>(index), static_cast<int>(modules.size() - 1)});
    if (placement == plan::Placement::kNonColocated) {
      job.num_ranks += modules[index].layout->num_ranks();
    }
  }
  job.num_ranks += llm.num_ranks();
  job.workload = {.sequence_length = 1536, .global_batch = 4L * llm.dp, .microbatch_size = 1};
  job.optimizer.bucket_parameters = 2'000'000;
  job.modules = std::move(modules);
  return job;
}

/// The join of reference §6.3: two encoders of unequal depth, E1 PP2 and E2 PP1, before an LLM PP3.
inline plan::Job UnevenJoin() {
  return SmallJob("uneven join", plan::Placement::kNonColocated,
                  {SmallEncoder("e1", {.pp = 2}), SmallEncoder("e2", {.first_rank = 2}),
                   SmallLlm({.pp = 3, .first_rank = 3})});
}

/// The same as that section's deadlock: two messages a call, warm-up counted from the sources.
inline plan::Job DeadlockingJoin() {
  plan::Job job = UnevenJoin();
  job.name = "deadlocking join";
  job.schedule.warmup_rule = plan::WarmupRule::kDistanceFromSource;
  job.schedule.protocol = plan::MessageProtocol::kShapeThenPayload;
  return job;
}

/// Two dozen jobs whose names say what they are about.
std::vector<plan::Job> SmallJobs();

}  // namespace isthmus::tests
