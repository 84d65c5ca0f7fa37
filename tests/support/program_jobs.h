#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "plan/job.h"
#include "plan/program/program.h"
#include "plan/program/validate.h"
#include "tests/support/model_catalogue.h"

/// Small jobs with figures that are easy to work out by hand, and words to ask programs with.
namespace isthmus::tests {

/// GPT style, hidden 768, 24 heads of 32, 32,000 words (a multiple of 128·tp up to tp 2), untied.
/// A layer has 4·768² + 2·768·3072 = 7,077,888 parameters and two norms of 2·768.
inline plan::Module LlmOf(const plan::Layout& layout, int num_layers = 8) {
  plan::Module llm = Gpt("llm", num_layers, 768, 24, 32000);
  llm.transformer.tied_embeddings = false;
  llm.transformer.max_positions = 1536;
  llm.layout = layout;
  return llm;
}

/// 4 layers of hidden 384; 8 images of 96 tokens a sample; a projector of one layer to the LLM's
/// width. Homogeneous until it gets a layout.
inline plan::Module EncoderOf(std::string name) {
  plan::Module encoder = Encoder(std::move(name), 4, 384, 24);
  encoder.projector = plan::Projector{.num_layers = 1};
  encoder.tokens_per_sample = 768;
  encoder.llm_tokens_per_sample = 768;
  encoder.span_tokens = 96;
  encoder.input_width = 588;
  encoder.transformer.max_positions = 96;
  return encoder;
}

inline plan::Module EncoderOf(std::string name, const plan::Layout& layout) {
  plan::Module encoder = EncoderOf(std::move(name));
  encoder.layout = layout;
  return encoder;
}

/// Encoders first, the LLM last. Microbatches of one sample with 1,536 tokens; both overlap passes
/// on. First ranks of a non-colocated job are set here: modules one after the other.
inline plan::Job JobOf(plan::Placement placement, std::vector<plan::Module> modules,
                       int num_microbatches = 4) {
  plan::Job job;
  job.name = "test";
  job.placement = placement;
  const int llm = static_cast<int>(modules.size()) - 1;
  for (int index = 0; index <= llm; ++index) {
    plan::Module& module = modules[static_cast<std::size_t>(index)];
    if (index < llm) job.edges.push_back({index, llm});
    if (placement != plan::Placement::kNonColocated) continue;
    module.layout->first_rank = job.num_ranks;
    job.num_ranks += module.layout->num_ranks();
  }
  const plan::Layout& layout = *modules.back().layout;
  if (placement != plan::Placement::kNonColocated) job.num_ranks = layout.num_ranks();
  job.workload = {.sequence_length = 1536,
                  .global_batch = std::int64_t{num_microbatches} * layout.dp,
                  .microbatch_size = 1};
  job.modules = std::move(modules);
  return job;
}

/// The join of the paper's figures 4 and 14: E1 PP2 on ranks 0-1, E2 PP1 on rank 2, LLM PP3 on
/// ranks 3-5.
inline plan::Job JoinOfUnequalDepth(int num_microbatches = 8) {
  return JobOf(plan::Placement::kNonColocated,
               {EncoderOf("e1", {.pp = 2}), EncoderOf("e2", {}), LlmOf({.pp = 3})},
               num_microbatches);
}

/// What Validate() finds, one line each; "" for a valid program.
inline std::string ProblemsOf(const plan::Program& program) {
  std::string text;
  for (const std::string& problem : plan::Validate(program).problems) text += problem + "\n";
  return text;
}

/// Indices of the ops of `rank` that `wanted` accepts, in host order.
template <typename Wanted>
std::vector<std::size_t> Find(const plan::Program& program, int rank, Wanted wanted) {
  const plan::Role& role = program.role(base::Rank{rank});
  std::vector<std::size_t> found;
  for (std::size_t index = 0; index < role.ops.size(); ++index) {
    if (wanted(role.ops[index])) found.push_back(index);
  }
  return found;
}

/// Compute ops of a module with an action; microbatch -2 for any.
inline std::vector<std::size_t> FindComputes(const plan::Program& program, int rank, int module,
                                             plan::Action action, int microbatch = -2) {
  return Find(program, rank, [&](const plan::Op& op) {
    return op.kind == plan::OpKind::kCompute && op.module == module && op.action() == action &&
           (microbatch == -2 || op.microbatch == microbatch);
  });
}

inline std::vector<std::size_t> FindCollectives(const plan::Program& program, int rank,
                                                plan::CollectiveKind kind, plan::Purpose purpose) {
  return Find(program, rank, [&](const plan::Op& op) {
    return op.kind == plan::OpKind::kCollective && op.collective() == kind && op.purpose == purpose;
  });
}

inline std::vector<std::size_t> FindOptimizer(const plan::Program& program, int rank,
                                              plan::OptimizerAction action) {
  return Find(program, rank, [&](const plan::Op& op) {
    return op.kind == plan::OpKind::kOptimizer && op.optimizer() == action;
  });
}

inline const plan::Op& OpAt(const plan::Program& program, int rank, std::size_t index) {
  return program.role(base::Rank{rank}).ops[index];
}

/// Members of an op's communicator, as numbers.
inline std::vector<int> MembersOf(const plan::Program& program, int rank, const plan::Op& op) {
  const plan::Role& role = program.role(base::Rank{rank});
  std::vector<int> members;
  for (const base::Rank member : program.Members(base::Rank{rank}, role.groups[op.group])) {
    members.push_back(member.value());
  }
  return members;
}

/// Bytes of a Collective or Copy on a rank.
inline std::int64_t BytesOf(const plan::Program& program, int rank, const plan::Op& op) {
  return program.Size(base::Rank{rank}, op.size).value();
}

}  // namespace isthmus::tests
