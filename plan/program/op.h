#pragma once

#include <cstdint>

#include "plan/model/kernel.h"
#include "plan/program/value.h"

namespace isthmus::plan {

enum class OpKind : std::uint8_t { kCompute, kCollective, kP2P, kCopy, kOptimizer };

/// What a Compute op does to its block of layers.
enum class Action : std::uint8_t {
  kForward,
  kBackward,
  kBackwardInput,
  kBackwardWeight,
  kRecompute
};

/// "forward", "backward-input", ….
const char* ToText(Action action);

enum class CopyDirection : std::uint8_t { kToHost, kToDevice };

/// kClip scales gradients: by 1/tokens, and by what the norm asks for where gradients are clipped.
/// kStep updates parameters unless found_inf (its predicate is one of its consumed scalars).
enum class OptimizerAction : std::uint8_t { kZero, kNorm, kCheck, kClip, kStep };

/// What a Collective over all ranks sums, in Op::block: one double that each rank contributes to.
enum class WorldScalar : std::uint8_t {
  kTokens,    // valid tokens
  kFoundInf,  // ranks that found infinities
  kNorm,      // squared norm; each rank brings its modules' norms divided by the module's ranks
};

/// What an op belongs to; reports group time and bytes by it.
enum class Purpose : std::uint8_t {
  kModel,         // forward and backward
  kPipeline,      // activations and gradients between stages of a module
  kBoundary,      // between modules
  kGradientSync,  // gradients over dp×cp, over instances, over tp, tied embeddings
  kParameterGather,
  kScalars,  // token count, norms, found-inf
  kOffload,
  kOptimizer,
};
const char* ToText(Purpose purpose);

enum OpFlag : std::uint8_t {
  /// The host waits for the op's end before it issues anything else (blocking exchanges).
  kBlocksHost = 1U << 0U,
  /// The last Compute of the step's backward on this rank: here the straggler wait is taken.
  kEndsBackward = 1U << 1U,
  /// The last op of a step on this rank: fixed host work of a step is taken behind it.
  kEndsStep = 1U << 2U,
};

/// One op of a role, in the order its host issues them.
///
/// Ops of one lane run in list order; across lanes only values order them. An op may start when the
/// op before it on its lane has freed the lane and all values it consumes are ready. Compute with
/// inner collectives and Collective start when the last rank of `group` is ready, and end together.
/// A P2P op posts all its transfers at once (receives first), frees its lane at that moment, and
/// each of its values is ready when its own transfer ends. A Collective of 0 bytes is skipped: it
/// waits for values and lane alone, not for its members. 48 bytes, side arrays in Role.
struct Op {
  OpKind kind = OpKind::kCompute;
  std::uint8_t detail = 0;  // Action, CollectiveKind, CopyDirection or OptimizerAction by kind
  std::uint8_t flags = 0;   // OpFlag
  Purpose purpose = Purpose::kModel;
  std::uint16_t lane = 0;  // index into Role::lanes
  std::uint16_t module = 0;
  std::int32_t microbatch = -1;  // first microbatch; -1: of the whole step
  std::uint16_t chunk = 0;       // virtual stage on this rank, 0 … vpp-1
  std::int16_t step = 0;
  /// Compute, Optimizer: index into the rank's table of works. Collective, Copy: of sizes (bytes,
  /// by the convention of InnerCollective::bytes). P2P: kNone32, each transfer has its own.
  std::uint32_t size = kNone32;
  /// Index into Role::groups: the communicator of a Collective, the ranks a Compute is matched over
  /// (kNone32: not matched).
  std::uint32_t group = kNone32;
  std::uint32_t first_transfer = 0;
  std::uint32_t first_consumed = 0;
  std::uint32_t first_produced = 0;
  std::uint16_t num_transfers = 0;
  std::uint16_t num_consumed = 0;
  std::uint16_t num_produced = 0;
  std::uint16_t block =
      0;  // Compute: block within the chunk; collectives: bucket, step of the boundary, WorldScalar
  std::uint32_t span = kNone32;  // Compute: index into Role::spans

  Action action() const { return static_cast<Action>(detail); }
  CollectiveKind collective() const { return static_cast<CollectiveKind>(detail); }
  CopyDirection copy() const { return static_cast<CopyDirection>(detail); }
  OptimizerAction optimizer() const { return static_cast<OptimizerAction>(detail); }
};
static_assert(sizeof(Op) <= 48);

/// One message of a P2P op. Messages match in order per pair of ranks and direction.
struct Transfer {
  bool sends = true;
  std::uint32_t peer = 0;  // index into Role::peers
  ValueId value = 0;       // what is sent, or what the receive produces
  SizeId size = kNone32;   // 0 bytes: skipped by both sides
};

}  // namespace isthmus::plan
