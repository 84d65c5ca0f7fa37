#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/build/role_writer.h"
#include "plan/build/stage_plan.h"
#include "plan/build/work_pool.h"
#include "plan/program/program.h"
#include "plan/schedule/pipeline_call.h"

namespace isthmus::plan {

/// What the emitter of one module's stage on one rank works with.
struct StageOnRank {
  int module = 0;  // index into Job::modules
  int stage = 0;
  bool ends_module = true;               // the last stage
  std::vector<const StagePlan*> chunks;  // virtual stages of the rank, first layers first
  /// Tokens, tp, cp, span, projector: of any microbatch (or the window), or by microbatch.
  std::vector<BlockShape> shapes;
  int num_microbatches = 1;           // of this module: 1 for a colocated encoder
  std::int32_t first_microbatch = 0;  // -1: the module's one microbatch is the whole window
  int tp = 1;
  int module_ranks = 1;  // of the whole module
  int dp_shard = 1;      // ranks that share one copy of the optimizer state: dp_shard × cp
  int dp_replica = 1;
  bool module_trained = true;        // some stage of the module has trained parameters
  bool embedding_is_shared = false;  // trained tied embeddings on both ends of a pipeline
};

/// State that all modules of a rank share while a step is written.
struct StepState {
  int step = 0;
  /// Last value of the serial gradient synchronisation, so that what isn't overlapped runs in turn.
  std::optional<ValueId> serial;
  std::uint32_t last_compute = kNone32;  // index of the last Compute of the model
};

/// Writes the ops of one module's stage on one rank: parameter gathers, forward and backward
/// blocks, gradient synchronisation, optimizer. Schedules call it in the order of their calls.
///
/// Each chunk has its own buckets and microbatches; norm, clip and optimizer step are the rank's.
/// A bucket is numbered through all chunks of the rank, first chunk first.
///
/// Lifetime: refers to the writer, pool and plan. Not thread-safe.
class ModuleEmitter {
 public:
  ModuleEmitter(RoleWriter& writer, WorkPool& works, const Job& job, const StageOnRank& at);

  const StageOnRank& at() const { return at_; }
  /// Whether any backward runs on this chunk.
  bool has_backward(int chunk) const;
  bool trained() const { return trained_parameters_ > 0; }
  /// Whether any stage is: all ranks of the module take part in its norm then.
  bool module_trained() const { return at_.module_trained; }
  /// Whether gradients come from the stages behind this one: the module's backward is real.
  bool has_backward_behind() const;
  /// Of the activation from the virtual stage in front, and of what this one hands on.
  base::Bytes input_bytes(const Turn& turn) const;
  base::Bytes output_bytes(const Turn& turn) const;
  const BlockShape& shape_at(const Turn& turn) const {
    return at_.shapes[at_.shapes.size() == 1 ? 0 : static_cast<std::size_t>(turn.microbatch)];
  }
  /// What SlotKey::microbatch is in names of sizes that depend on the tokens of `turn`.
  std::int32_t size_microbatch(const Turn& turn) const {
    return at_.shapes.size() == 1 ? -1 : turn.microbatch;
  }

  /// All-gathers parameters, bucket by bucket, and zeroes main gradients.
  void BeginStep(StepState& state);
  /// Forward of a microbatch through a chunk. `inputs` are what the first block consumes. Returns
  /// the output, or nothing for the chunk that ends in the loss.
  std::optional<ValueId> Forward(StepState& state, const Turn& turn,
                                 const std::vector<ValueId>& inputs);
  /// Backward of a microbatch through a chunk. The last block (first in backward order) also
  /// consumes `output_gradients`; the first block's op produces `input_gradients`, and consumes
  /// `accumulated` (earlier versions of those it accumulates into).
  void Backward(StepState& state, const Turn& turn, const std::vector<ValueId>& output_gradients,
                const std::vector<ValueId>& accumulated,
                const std::vector<ValueId>& input_gradients);
  /// Weight gradients of the head that waited for the end of the backwards, in their order.
  void FinishDeferred(StepState& state);
  /// Reductions that were not overlapped, sums over tp, tied embeddings.
  void SyncGradients(StepState& state);
  /// Squared norm of the owned gradients and its sum over the module; returns the scalar.
  ValueId Norm(StepState& state);
  /// Looks for infinities in the owned gradients (fp16); returns the scalar.
  ValueId CheckOverflow(StepState& state);
  /// Clip (scaling by the token count included) and step; `predicates` are scalars it waits for.
  void Optimize(StepState& state, const std::vector<ValueId>& predicates);
  /// Moves all parameters to the host after `after`, or back.
  void Offload(StepState& state, CopyDirection direction, const std::vector<ValueId>& after);

  /// A scalar of this step.
  ValueId AddScalar();

 private:
  struct MicrobatchContext {
    std::vector<std::vector<ValueId>> saved;  // by backward block: context, or checkpoint
    std::optional<ValueId> logits;            // without logit_gradient
    /// The part of the loss's buffers that ends as the gradient of the logits, where it outlives
    /// the others because the head's weight gradient is put off.
    std::optional<ValueId> logit_gradient;
  };

  struct Chunk {
    const StagePlan* plan = nullptr;
    std::size_t first_bucket = 0;  // among all buckets of the rank
    std::size_t frozen = 0;        // index into parameters_ of its frozen storage, if it has one
    std::vector<MicrobatchContext> contexts;
  };

  Chunk& chunk_of(const Turn& turn) { return chunks_[static_cast<std::size_t>(turn.chunk)]; }
  MicrobatchContext& context_of(const Turn& turn) {
    return chunk_of(turn).contexts[static_cast<std::size_t>(turn.microbatch)];
  }
  const std::vector<ForwardBlock>& BlocksOf(const Turn& turn) const;
  BlockShape ShapeOf(const Turn& turn, const Block& block) const;
  /// With what the backward of the block computes and what its forward keeps for it.
  BlockShape ShapeOf(const Turn& turn, const BackwardBlock& backward) const;
  /// Layers of all chunks, and the ends that any of them has.
  BlockShape ShapeOfRank() const;
  static BlockSpan SpanOf(const BackwardBlock& block);
  std::uint32_t SpanOf(SlotKey key, const Turn& turn, const ForwardBlock& block);
  Storage ActivationStorage(ValueKind kind, MemoryCategory category, const Turn& turn,
                            SizeId size) const;
  Op ComputeOp(const StepState& state, const BlockShape& shape, Action action, const Turn& turn,
               std::size_t block);
  std::vector<ValueId> Parameters(const Turn& turn, const std::vector<int>& storages) const;
  void AddPersistentStorage();
  void SaveContexts(const ForwardBlock& forward, const Turn& turn, std::vector<ValueId>& produced);
  /// A head's weight gradient that waits.
  struct Deferred {
    Turn turn = {};
    const BackwardBlock* block = nullptr;
    std::size_t index = 0;
    std::vector<ValueId> saved;  // the head's context and the gradient of the logits
  };

  // deferred_head.cc
  bool Defers(const BackwardBlock& block, const Turn& turn) const;
  bool WaitsForDeferred(std::size_t bucket) const;
  /// Whether the bucket has tied embeddings that another stage has too.
  bool HoldsSharedEmbedding(std::size_t bucket) const;
  void SumEmbedding(StepState& state, std::size_t bucket);
  ValueId AddLogitGradient(const BlockShape& shape, const Turn& turn);
  /// The head's backward without its weight gradient, which FinishDeferred() computes.
  std::uint32_t DeferHead(StepState& state, const BackwardBlock& block, const Turn& turn,
                          std::size_t index, std::vector<ValueId> consumed,
                          std::vector<ValueId> produced);
  /// Consumes the main gradients of the block's buckets and produces their next versions.
  void Accumulate(const BackwardBlock& block, const Turn& turn, std::vector<ValueId>& consumed,
                  std::vector<ValueId>& produced);
  std::uint32_t AddBackward(StepState& state, const BackwardBlock& block, const Turn& turn,
                            std::size_t index, std::vector<ValueId> consumed,
                            std::vector<ValueId> produced);
  void ReduceBucket(StepState& state, std::size_t bucket, bool serial);
  /// Those whose last gradient the block has computed, beside the blocks in front.
  void ReduceFinished(StepState& state, const BackwardBlock& block, const Turn& turn);
  ValueId Communicate(StepState& state, CollectiveKind kind, std::uint32_t group, Purpose purpose,
                      const SlotKey& key, base::Bytes bytes, ValueId value, int bucket,
                      bool serial);
  std::uint32_t AddOptimizerOp(StepState& state, OptimizerAction action,
                               const std::vector<ValueId>& consumed,
                               const std::vector<ValueId>& produced);
  SlotKey Key(std::uint16_t what, std::size_t block = 0, std::uint32_t extra = 0) const;
  /// Of what depends on the tokens of `turn`.
  SlotKey Key(const Turn& turn, std::uint16_t what, std::size_t block, std::uint32_t extra) const;
  int shards() const { return at_.dp_shard; }
  std::uint32_t AxesGroup(AxisSet axes);
  base::Bytes ParameterBytes(std::int64_t parameters) const;
  base::Bytes GradientBytes(std::int64_t parameters) const;
  base::Bytes ScalarBytes() const;  // of a norm or flag of this module

  RoleWriter& writer_;
  WorkPool& works_;
  const Job& job_;
  StageOnRank at_;
  const Module& module_;
  std::vector<Chunk> chunks_;
  std::vector<const Bucket*> buckets_;  // of all chunks
  std::int64_t trained_parameters_ = 0;
  std::int64_t frozen_parameters_ = 0;
  std::int64_t replicated_parameters_ = 0;  // trained, replicated over tp
  std::vector<ValueId> parameters_;         // by storage: buckets, then frozen ones
  std::vector<ValueId> gradients_;          // by bucket
  std::vector<bool> reduced_;               // by bucket, in this step
  std::optional<ValueId> optimizer_state_;
  std::vector<Deferred> deferred_;
};

/// Names of sizes and works (SlotKey::what).
enum SlotName : std::uint16_t {
  kSlotActivation,
  kSlotContext,
  kSlotCheckpoint,
  kSlotLogits,
  kSlotParameters,
  kSlotGradients,
  kSlotOptimizerState,
  kSlotPlaceholders,
  kSlotWeightCopies,
  kSlotScalar,
  kSlotReduceScatter,
  kSlotAllReduceReplicas,
  kSlotGather,
  kSlotReplicatedGradients,
  kSlotEmbeddingGradients,
  kSlotForward,
  kSlotBackward,
  kSlotBackwardInput,
  kSlotBackwardWeight,
  kSlotLogitGradients,
  kSlotRecompute,
  kSlotOptimizer,
  kSlotBoundary,
  kSlotBoundaryMessage,
  kSlotBoundaryCollective,
  kSlotOffload,
  kSlotShape,
};

}  // namespace isthmus::plan
