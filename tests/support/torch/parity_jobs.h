#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plan/job.h"
#include "tests/support/program_jobs.h"

/// Jobs of a few thousand parameters that real ranks train in some ten milliseconds a step, nearly
/// all of it in collectives: a GPT of 2 layers, encoders of 2 layers, 4 samples a step on any
/// layout.
namespace isthmus::tests {

inline constexpr std::int64_t kParitySequence = 24;
inline constexpr std::int64_t kParityBatch = 4;

/// Hidden 32, 4 heads of 8, 64 words, learned positions, untied head.
inline plan::Module TinyLlm(const plan::Layout& layout) {
  plan::Module llm = Gpt("llm", 2, 32, 4, 64);
  llm.transformer.ffn_hidden = 64;
  llm.transformer.tied_embeddings = false;
  llm.transformer.max_positions = kParitySequence;
  llm.layout = layout;
  return llm;
}

/// The same dimensions as Llama has them: gated MLP, rotary, 4 query heads on 2 of keys.
inline plan::Module TinyLlama(const plan::Layout& layout) {
  plan::Module llm = TinyLlm(layout);
  llm.transformer.gated_mlp = true;
  llm.transformer.rotary = true;
  llm.transformer.num_kv_heads = 2;
  llm.transformer.max_positions = 0;
  return llm;
}

/// Hidden 16, 4 heads of 4; two images of 4 patches (2 · 2 pixels in colour) a sample; a projector
/// of two layers with an inner width of 16.
inline plan::Module TinyEncoder(std::string name) {
  plan::Module encoder = Encoder(std::move(name), 2, 16, 4);
  encoder.transformer.ffn_hidden = 32;
  encoder.projector = plan::Projector{.num_layers = 2, .hidden = 16};
  encoder.tokens_per_sample = 8;
  encoder.llm_tokens_per_sample = 8;
  encoder.span_tokens = 4;
  encoder.input_width = 12;
  encoder.transformer.max_positions = 4;
  return encoder;
}

inline plan::Module TinyEncoder(std::string name, const plan::Layout& layout) {
  plan::Module encoder = TinyEncoder(std::move(name));
  encoder.layout = layout;
  return encoder;
}

/// One clip of 4 frames of 8 bands, a projector of one layer.
inline plan::Module TinySound(const plan::Layout& layout) {
  plan::Module sound = TinyEncoder("sound", layout);
  sound.kind = plan::ModuleKind::kAudio;
  sound.projector = plan::Projector{.num_layers = 1};
  sound.tokens_per_sample = 4;
  sound.llm_tokens_per_sample = 4;
  sound.input_width = 8;
  return sound;
}

/// Encoders first, the LLM last; all in `precision` with main gradients in at least fp32. Buckets
/// are small, so that every chunk has several.
inline plan::Job ParityJob(plan::Placement placement, std::vector<plan::Module> modules,
                           plan::DType precision = plan::DType::kFp64) {
  for (plan::Module& module : modules) {
    module.settings.precision = precision;
    module.settings.gradient_dtype =
        precision == plan::DType::kFp64 ? plan::DType::kFp64 : plan::DType::kFp32;
  }
  plan::Job job = JobOf(placement, std::move(modules));
  job.workload = {
      .sequence_length = kParitySequence, .global_batch = kParityBatch, .microbatch_size = 1};
  job.optimizer.bucket_parameters = 6000;
  return job;
}

/// The job on a batch whose samples have so many images or clips of encoder `module`; 0: text
/// alone.
inline plan::Job WithCounts(plan::Job job, std::vector<std::int32_t> counts,
                            std::size_t module = 0) {
  plan::Module& encoder = job.modules[module];
  const std::int64_t thinned = encoder.tokens_per_sample / encoder.llm_tokens_per_sample;
  encoder.tokens_per_sample = *std::max_element(counts.begin(), counts.end()) * encoder.span_tokens;
  encoder.llm_tokens_per_sample = encoder.tokens_per_sample / thinned;
  job.workload.global_batch = static_cast<std::int64_t>(counts.size());
  encoder.spans_of_sample = std::move(counts);
  return job;
}

}  // namespace isthmus::tests
