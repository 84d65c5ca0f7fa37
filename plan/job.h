#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "plan/model/module.h"

/// What plan is asked for: plain structs that a scenario fills. Units: tokens, samples, bytes.
namespace isthmus::plan {

/// Data of one step.
struct Workload {
  std::int64_t sequence_length = 0;  // LLM tokens per sample, vision tokens included
  std::int64_t global_batch = 0;     // samples per step
  std::int64_t microbatch_size = 1;  // samples per LLM microbatch and data-parallel copy
  /// By place in the global batch (shard, microbatch, slot): number of the sample, as drawn, that
  /// stands there. Every place holds its own sample where this is empty (BalanceSamples() fills
  /// it).
  std::vector<std::int32_t> sample_order;

  std::int64_t SampleAt(std::int64_t place) const {
    return sample_order.empty() ? place : sample_order[static_cast<std::size_t>(place)];
  }
};

/// u feeds v. Indices into Job::modules.
struct Edge {
  int from = 0;
  int to = 0;
};

enum class Placement : std::uint8_t { kHomogeneous, kColocated, kNonColocated };
std::string ToText(Placement placement);

/// How warm-up depth of the graph-aware 1F1B is counted. The rule of the code (from sources) is
/// kept because tests show that it deadlocks where the paper's does not (reference §6.3).
enum class WarmupRule : std::uint8_t { kDistanceToSink, kDistanceFromSource };
/// Shape-then-payload: two blocking exchanges per call, as Megatron's bridge does (tests only).
enum class MessageProtocol : std::uint8_t { kSingle, kShapeThenPayload };

struct ScheduleOptions {
  /// Layers per Compute op; 0: a whole chunk in one op.
  int block_layers = 0;
  /// Microbatches whose weight gradient of the LM head waits for the end of the backwards, when the
  /// last stage idles (Megatron-LM's defer_embedding_wgrad_compute with its limit); 0: none.
  int defer_embedding_wgrad = 0;
  WarmupRule warmup_rule = WarmupRule::kDistanceToSink;
  MessageProtocol protocol = MessageProtocol::kSingle;
};

struct OptimizerOptions {
  bool overlap_grad_reduce = true;   // pass `overlap_grad_reduce`
  bool overlap_param_gather = true;  // pass `overlap_param_gather`
  /// Parameters per bucket; 0: Megatron's max(40 M, 1 M · dp).
  std::int64_t bucket_parameters = 0;
  bool clip_gradients = true;
};

/// How the process allocates device memory: decides what it reserves beyond what tensors take.
enum class Allocator : std::uint8_t {
  kCaching,             // PyTorch's default segments
  kEagerStreams,        // eager code on several streams, which share no segments
  kExpandableSegments,  // PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
};

/// A validated request for a program. Needs what scenarios guarantees: exactly one decoder, every
/// other module an encoder with one edge into it, layouts that tile [0, num_ranks) and make one of
/// the three placements, divisibility of heads, layers, batch. Build() checks its own
/// preconditions.
struct Job {
  std::string name;
  std::vector<Module> modules;
  std::vector<Edge> edges;
  Workload workload;
  ScheduleOptions schedule;
  OptimizerOptions optimizer;
  Allocator allocator = Allocator::kCaching;
  Placement placement = Placement::kHomogeneous;
  int num_ranks = 0;
  int num_steps = 1;

  int decoder() const;  // index of the one decoder
  /// Microbatches of a step: global_batch / (microbatch_size · dp of the decoder).
  std::int64_t num_microbatches() const;
};

/// Whether the first and the last of `num_stages` virtual stages, which have embedding and head
/// besides, have a layer less than the others where no layers are given: where two layers more
/// would divide (modelling_runs §5: 126 = 8·16 − 2).
constexpr bool HasShortEnds(std::int64_t num_layers, std::int64_t num_stages) {
  return num_layers % num_stages != 0 && (num_layers + 2) % num_stages == 0;
}

}  // namespace isthmus::plan
