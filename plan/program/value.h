#pragma once

#include <cstdint>

/// Values: what ops consume and produce. Memory and dependencies follow from them alone.
namespace isthmus::plan {

/// Index of a value, storage, or size within one Role (values, storages) or Program (sizes).
using ValueId = std::uint32_t;
using StorageId = std::uint32_t;
using SizeId = std::uint32_t;
inline constexpr std::uint32_t kNone32 = 0xffffffffU;  // "no size", "no group", "no storage"

enum class ValueKind : std::uint8_t {
  kActivation,      // a tensor that flows forward
  kGradient,        // a tensor that flows backward
  kContext,         // what a forward (or recompute) saves for its backward
  kCheckpoint,      // inputs kept so that a recompute can rebuild a context
  kParameter,       // working weights; versions count optimizer steps and parameter gathers
  kGradientBucket,  // main gradients of a bucket; versions count accumulations and reductions
  kOptimizerState,
  kScalar,  // norms, found-inf, token counts
};

/// Categories of the memory report.
enum class MemoryCategory : std::uint8_t {
  kParameters,
  kGradients,
  kOptimizerState,
  kActivations,
  kBoundary,
  kLogits,
  kPlaceholders,
  kTransient,
  kCommunication,
  kWorkspace,
  kContext,
};
inline constexpr int kNumMemoryCategories = 11;
const char* ToText(MemoryCategory category);

/// A piece of device memory. It is live from the op that produces its first version to the end of
/// the last op that consumes any version; persistent storage (parameters, main gradients, optimizer
/// state) lives the whole step, but for the time a Copy has moved it to the host.
struct Storage {
  ValueKind kind = ValueKind::kActivation;
  MemoryCategory category = MemoryCategory::kActivations;
  bool persistent = false;
  std::uint16_t module = 0;
  std::uint16_t chunk = 0;
  std::int32_t microbatch = -1;  // first microbatch; -1: of the whole step
  std::int32_t bucket = -1;      // gradient buckets
  SizeId size = kNone32;         // bytes, in the rank's size table
};

/// One version of a storage. Accumulation consumes version k and produces k + 1.
struct Value {
  StorageId storage = 0;
  std::uint32_t version = 0;
};

}  // namespace isthmus::plan
