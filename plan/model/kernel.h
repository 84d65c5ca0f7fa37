#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/units.h"
#include "plan/layout/axes.h"

/// What a Compute op is made of: kernels and inner collectives, with shapes and bytes but no times.
///
/// Shapes are those of ONE rank. A cost model turns them into seconds, a backend's profiler finds
/// the same pieces in the same order under the same indices.
namespace isthmus::plan {

/// kFp64 is for parity tests on real ranks: no profile has its rates.
enum class DType : std::uint8_t { kFp8, kBf16, kFp16, kFp32, kFp64 };
base::Bytes BytesOf(DType dtype);
const char* ToText(DType dtype);  // "fp8", "bf16", …
/// The word of a type in the profile keys of its rates: both 16-bit types have "bf16".
const char* RateKey(DType dtype);

/// Which code runs the attention core; a scenario setting because it decides up to 9 % of a step.
enum class AttentionKernel : std::uint8_t { kCudnn, kFlash3, kFlash2, kFlash1, kUnfused };
/// "cudnn", "flash3" …: the spelling of files and of profile keys.
const char* ToText(AttentionKernel kernel);

/// C[m,n] (+)= A[m,k] B[k,n]. `output_bytes` is the output's memory traffic: m·n·2 for bf16
/// activations; read plus write of the main gradient (2·g·m·n) for an accumulating weight gradient.
struct Gemm {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  DType dtype = DType::kBf16;
  base::Bytes output_bytes{0};
  /// fp8 only: partial sums are promoted to fp32 on the way (split accumulation), as dgrad and
  /// wgrad of training do it; slower than the fast accumulation of the forward.
  bool promoted_accumulation = false;
  /// A 16-bit product of an fp8 run: one chip has one clock, so it runs at that of the fp8
  /// products.
  bool in_fp8_run = false;
  /// fp8 only: one scale per block of the operands instead of one per tensor; promotes as well.
  bool block_scaled = false;
};
base::Flops FlopsOf(const Gemm& gemm);  // 2·m·n·k

/// The attention core over `num_sequences` independent spans of `query_len` × `kv_len` tokens,
/// `heads` query heads on this rank. FLOP: 4·num_sequences·heads·query_len·kv_len·head_dim, half of
/// it when causal; the backward is 2.5 times that (five matrix products for two).
struct Attention {
  std::int64_t num_sequences = 0;
  std::int64_t query_len = 0;
  std::int64_t kv_len = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  bool causal = true;
  bool backward = false;
  AttentionKernel kernel = AttentionKernel::kCudnn;
  DType dtype = DType::kBf16;    // of queries, keys and values; 16 bit in fp8 runs
  bool in_fp8_run = false;       // as Gemm's
  bool variable_length = false;  // called through the API for packed samples
};
/// Executed FLOP by the rule above (backward 2.5 times the forward).
base::Flops FlopsOf(const Attention& attention);

/// Classes of memory-bound kernels that reach different shares of the HBM bandwidth.
enum class MemoryClass : std::uint8_t {
  kElementwise,
  kNorm,
  kNormBackward,
  kCast,
  kCrossEntropy,
  kOptimizer,
  kHeadNorm,  // over the width of a head: QK-norm
  kHeadNormBackward
};
inline constexpr std::size_t kNumMemoryClasses =
    static_cast<std::size_t>(MemoryClass::kHeadNormBackward) + 1;
/// "elementwise", "norm_backward", …: the spelling of profiles and measurements.
const char* ToText(MemoryClass memory_class);

/// `launches` kernels that move `bytes` in all (reads plus writes).
struct MemoryBound {
  MemoryClass memory_class = MemoryClass::kElementwise;
  base::Bytes bytes{0};
  int launches = 1;
};

using Kernel = std::variant<Gemm, Attention, MemoryBound>;

enum class CollectiveKind : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kAllToAllV,
  kBroadcast,
  kReduce,
  /// A ring of `steps` exchanges with the neighbours, as context-parallel attention makes them;
  /// `bytes` is what one rank sends in one exchange.
  kRingExchange,
};
/// "all_reduce", "all_gather", …: the spelling of files and keys.
std::string ToText(CollectiveKind kind);

/// A collective inside a Compute op. `bytes` follows nccl-tests' S: all-reduce, broadcast, reduce:
/// the buffer; all-gather, reduce-scatter: the whole (gathered) buffer; all-to-all: what one rank
/// holds.
struct InnerCollective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  AxisSet axes;
  base::Bytes bytes{0};
  int steps = 1;  // kRingExchange: number of exchanges (cp - 1)
};

/// How the compute and the communication of a segment run beside each other.
enum class Overlap : std::uint8_t {
  kNone,        // one after the other: only the piece that is there, or compute then collective
  kBulk,        // an independent collective beside the kernels (all-gather of x beside dgrad)
  kGatherIn,    // user buffers: all-gather in chunks feeding the GEMM
  kScatterOut,  // user buffers: the GEMM's chunks feeding a reduce-scatter
  /// Context-parallel ring of `steps` exchanges. Exactly steps + 1 kernels: kernels[i] is the
  /// attention of step i, on the block that exchange i - 1 brought (step 0: the rank's own).
  /// Exchange i runs beside kernels[i]; the last kernel has none beside it.
  kRing,
};

/// One serial step of a block: kernels, a collective, or both side by side. A segment takes ONE
/// integer duration; a block is the sum of its segments, so fused and expanded runs agree exactly.
struct Segment {
  const char* name = "";  // "qkv", "attention", "fc1 dgrad"…: static text
  std::vector<Kernel> kernels;
  std::optional<InnerCollective> collective;
  Overlap overlap = Overlap::kNone;
};

/// A run of equal segments lists: `count` layers that are all alike are described once.
struct RepeatedSegments {
  int count = 1;
  std::vector<Segment> segments;
};

/// The moments of a step at which a rank can hold most (modelling_memory §4).
enum class MemoryMoment : std::uint8_t {
  kForward,
  kTurn,           // the first backward, with all microbatches in flight
  kLoss,           // logits, their gradient and the head's
  kEndOfBackward,  // the gradient of the embedding
  kRecompute,      // a layer rebuilt, and its backward
  kOptimizerStep,
};
/// "forward", "turn", "loss", "end of backward", "recompute", "optimizer step".
const char* ToText(MemoryMoment moment);

/// The work of one Compute op on one rank.
struct Work {
  std::string name;  // "llm forward layers 0-19 tokens 8192"
  std::vector<RepeatedSegments> parts;
  base::Flops model_flops{0};      // what the model needs (no recomputation), this rank's share
  base::Flops hardware_flops{0};   // what is executed, recomputation included
  base::Bytes transient_bytes{0};  // needed for a moment beyond inputs, outputs and context
  MemoryMoment moment = MemoryMoment::kForward;  // what that moment is
  int eager_layers = 0;  // layers whose kernels an eager host issues one by one
};
/// FLOP of all GEMM and attention kernels, as executed (padding and recomputation included).
base::Flops ExecutedFlops(const Work& work);

}  // namespace isthmus::plan
