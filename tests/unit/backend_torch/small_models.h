#pragma once

#include <string>

#include "plan/program/program.h"
#include "tests/support/program_jobs.h"

/// Models that are small enough for plain references in fp64.
namespace isthmus::tests {

/// Hidden 32, 4 heads of 8, 2 of keys and values, ffn 64, 200 words (padded to a multiple of 128 ·
/// tp).
inline plan::Module TinyLlama(const plan::Layout& layout) {
  plan::Module llm = Llama("llm", 2, 32, 64, 4, 2);
  llm.transformer.head_dim = 8;
  llm.transformer.vocab_size = 200;
  llm.settings.precision = plan::DType::kFp64;
  llm.settings.gradient_dtype = plan::DType::kFp64;
  llm.layout = layout;
  return llm;
}

/// The same with LayerNorm, GELU, learned positions and tied embeddings.
inline plan::Module TinyGpt(const plan::Layout& layout) {
  plan::Module llm = TinyLlama(layout);
  llm.transformer.gated_mlp = false;
  llm.transformer.rotary = false;
  llm.transformer.max_positions = 16;
  llm.transformer.tied_embeddings = true;
  return llm;
}

/// Hidden 16, 4 heads of 4, patches of 12; a sample has 2 images of 8 patches, 4 tokens each at the
/// LLM, and a projector of two layers to width 32 runs here.
inline plan::Module TinyVit(const plan::Layout& layout) {
  plan::Module vit = Encoder("vit", 2, 16, 4);
  vit.transformer.ffn_hidden = 32;
  vit.transformer.max_positions = 8;
  vit.projector = plan::Projector{.num_layers = 2, .hidden = 24};
  vit.tokens_per_sample = 16;
  vit.llm_tokens_per_sample = 8;
  vit.span_tokens = 8;
  vit.input_width = 12;
  vit.settings.precision = plan::DType::kFp64;
  vit.settings.gradient_dtype = plan::DType::kFp64;
  vit.layout = layout;
  return vit;
}

/// Two samples of 16 tokens a microbatch; encoders in front.
inline plan::Job TinyJob(std::vector<plan::Module> modules,
                         plan::Placement placement = plan::Placement::kColocated) {
  plan::Job job = JobOf(placement, std::move(modules), 1);
  job.workload.sequence_length = 16;
  job.workload.microbatch_size = 2;
  job.workload.global_batch = 2L * job.modules.back().layout->dp;
  return job;
}

}  // namespace isthmus::tests
