#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/build/role_writer.h"
#include "plan/build/stage_plan.h"
#include "plan/build/work_pool.h"
#include "plan/program/program.h"

namespace isthmus::plan {

/// What the emitter of one module's stage on one rank works with.
struct StageOnRank {
  int module = 0;  // index into Job::modules
  int stage = 0;
  const StagePlan* plan = nullptr;
  BlockShape shape;                   // tokens, tp, cp, span, projector of a microbatch (or window)
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
/// Lifetime: refers to the writer, pool and plan. Not thread-safe.
class ModuleEmitter {
 public:
  ModuleEmitter(RoleWriter& writer, WorkPool& works, const Job& job, const StageOnRank& at);

  const StageOnRank& at() const { return at_; }
  /// Whether any backward runs on this stage.
  bool has_backward() const;
  bool trained() const { return at_.plan->trained_parameters > 0; }
  /// Whether any stage is: all ranks of the module take part in its norm then.
  bool module_trained() const { return at_.module_trained; }
  /// Whether gradients come from the stages behind this one: the module's backward is real.
  bool has_backward_behind() const;
  base::Bytes input_bytes() const;  // of the activation from the stage in front
  base::Bytes output_bytes() const;

  /// All-gathers parameters, bucket by bucket, and zeroes main gradients.
  void BeginStep(StepState& state);
  /// Forward of a microbatch. `inputs` are what the first block consumes. Returns the output, or
  /// nothing for the stage that ends in the loss.
  std::optional<ValueId> Forward(StepState& state, int microbatch,
                                 const std::vector<ValueId>& inputs);
  /// Backward of a microbatch. The last block (first in backward order) also consumes
  /// `output_gradients`; the first block's op produces `input_gradients`, and consumes
  /// `accumulated` (earlier versions of those it accumulates into).
  void Backward(StepState& state, int microbatch, const std::vector<ValueId>& output_gradients,
                const std::vector<ValueId>& accumulated,
                const std::vector<ValueId>& input_gradients);
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
    std::optional<ValueId> logits;
  };

  const std::vector<ForwardBlock>& BlocksOf(int microbatch) const;
  BlockShape ShapeOf(const Block& block) const;
  /// With what the backward of the block computes and what its forward keeps for it.
  BlockShape ShapeOf(const BackwardBlock& backward) const;
  Storage ActivationStorage(ValueKind kind, MemoryCategory category, int microbatch,
                            SizeId size) const;
  Op ComputeOp(const StepState& state, const BlockShape& shape, Action action, int microbatch,
               std::size_t block);
  std::vector<ValueId> Parameters(const std::vector<int>& storages) const;
  void AddPersistentStorage();
  void SaveContexts(const ForwardBlock& forward, int microbatch, std::vector<ValueId>& produced);
  std::uint32_t AddBackward(StepState& state, const BackwardBlock& block, int microbatch,
                            std::size_t index, std::vector<ValueId> consumed,
                            std::vector<ValueId> produced);
  void ReduceBucket(StepState& state, int bucket, bool serial);
  ValueId Communicate(StepState& state, CollectiveKind kind, AxisSet axes, Purpose purpose,
                      const SlotKey& key, base::Bytes bytes, ValueId value, int bucket,
                      bool serial);
  std::uint32_t AddOptimizerOp(StepState& state, OptimizerAction action,
                               const std::vector<ValueId>& consumed,
                               const std::vector<ValueId>& produced);
  SlotKey Key(std::uint16_t what, std::size_t block = 0, std::uint32_t extra = 0) const;
  int shards() const { return at_.dp_shard; }
  std::uint32_t AxesGroup(AxisSet axes);
  base::Bytes ParameterBytes(std::int64_t parameters) const;
  base::Bytes GradientBytes(std::int64_t parameters) const;

  RoleWriter& writer_;
  WorkPool& works_;
  const Job& job_;
  StageOnRank at_;
  const Module& module_;
  std::vector<ValueId> parameters_;  // by storage: buckets, then frozen
  std::vector<ValueId> gradients_;   // by bucket
  std::vector<bool> reduced_;        // by bucket, in this step
  std::optional<ValueId> optimizer_state_;
  std::vector<MicrobatchContext> contexts_;
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
  kSlotScalar,
  kSlotReduceScatter,
  kSlotAllReduceReplicas,
  kSlotGather,
  kSlotReplicatedGradients,
  kSlotEmbeddingGradients,
  kSlotForward,
  kSlotBackward,
  kSlotRecompute,
  kSlotOptimizer,
  kSlotBoundary,
  kSlotBoundaryMessage,
  kSlotBoundaryCollective,
  kSlotOffload,
  kSlotShape,
};

}  // namespace isthmus::plan
