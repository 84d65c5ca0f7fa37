#include <fmt/core.h>

#include "base/check.h"
#include "plan/model/layers.h"

namespace isthmus::plan {
namespace {

// Adam: fp32 master weight and both moments read and written, main gradient read, working weight
// written, and the cast of the gradient (modelling_runs §5).
constexpr std::int64_t kStepBytesPerParameter = 34;
// Kernels of the multi-tensor passes (modelling_runs' prototype).
constexpr int kStepLaunches = 50;
constexpr int kSweepLaunches = 10;

const char* NameOf(OptimizerAction action) {
  switch (action) {
    case OptimizerAction::kZero:
      return "zero gradients";
    case OptimizerAction::kNorm:
      return "gradient norm";
    case OptimizerAction::kCheck:
      return "found-inf check";
    case OptimizerAction::kClip:
      return "scale gradients";
    case OptimizerAction::kStep:
      return "adam step";
  }
  ISTHMUS_CHECK(false, "no such optimizer action: {}", static_cast<int>(action));
}

MemoryBound TrafficOf(const ModuleSettings& settings, std::int64_t held, std::int64_t owned,
                      OptimizerAction action) {
  const std::int64_t gradient = BytesOf(settings.gradient_dtype).value();
  // Only fp16 scales its loss, so only fp16 has overflows to look for.
  const bool checks = settings.precision == DType::kFp16;
  switch (action) {
    case OptimizerAction::kZero:
      return {MemoryClass::kElementwise, base::Bytes(gradient * held), kSweepLaunches};
    case OptimizerAction::kNorm:
      return {MemoryClass::kElementwise, base::Bytes(gradient * owned), kSweepLaunches};
    case OptimizerAction::kCheck:
      return {MemoryClass::kElementwise, base::Bytes(checks ? gradient * owned : 0), 1};
    case OptimizerAction::kClip: {
      const std::int64_t scaled = settings.framework->scales_owned_gradients ? owned : held;
      return {MemoryClass::kElementwise, base::Bytes(2 * gradient * scaled), kSweepLaunches};
    }
    case OptimizerAction::kStep:
      break;
  }
  return {MemoryClass::kOptimizer, base::Bytes(kStepBytesPerParameter * owned), kStepLaunches};
}

}  // namespace

base::Bytes OptimizerStateBytes(DType precision) {
  switch (precision) {
    case DType::kFp64:
      return base::Bytes(16);
    case DType::kFp32:
      return base::Bytes(8);
    case DType::kFp8:
    case DType::kBf16:
    case DType::kFp16:
      return base::Bytes(12);
  }
  ISTHMUS_CHECK(false, "no such dtype: {}", static_cast<int>(precision));
}

Work DescribeOptimizerWork(const ModuleSettings& settings, std::int64_t held, std::int64_t owned,
                           OptimizerAction action) {
  ISTHMUS_CHECK(0 <= owned && owned <= held, "owns {} of {} parameters", owned, held);
  Work work;
  work.name = fmt::format("{} {} of {} parameters", NameOf(action), owned, held);
  work.moment = MemoryMoment::kOptimizerStep;
  if (held == 0) return work;
  Segment segment;
  segment.name = NameOf(action);
  segment.kernels.emplace_back(TrafficOf(settings, held, owned, action));
  work.parts.push_back({1, {std::move(segment)}});
  return work;
}

}  // namespace isthmus::plan
