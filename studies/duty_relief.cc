#include "studies/duty_relief.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "sim/cost/kernel_model.h"
#include "sim/simulate.h"
#include "studies/internal/work_counts.h"

namespace isthmus::studies {
namespace {

constexpr int kMaxRounds = 8;
constexpr double kConverged = 1e-3;

struct Use {
  sim::Duty duty;  // without idle
  double ratio = 1;
};

// Those that don't reach the power limit draw what memory-bound ones do.
bool IsLight(const plan::Kernel& kernel, const profiles::Profile& profile) {
  const auto* attention = std::get_if<plan::Attention>(&kernel);
  if (attention == nullptr) return std::holds_alternative<plan::MemoryBound>(kernel);
  return profile.Number(fmt::format("attention.{}.throttled", plan::ToText(attention->kernel))) ==
         0;
}

bool IsFp8(const plan::Kernel& kernel) {
  const auto* gemm = std::get_if<plan::Gemm>(&kernel);
  return gemm != nullptr && gemm->dtype == plan::DType::kFp8;
}

// Kernel seconds of the program's works, each worked out once.
class WorkDuties {
 public:
  WorkDuties(const plan::Program& program, const profiles::Profile& profile)
      : program_(program), profile_(profile), model_(profile), duties_(program.works.size()) {}

  const sim::Duty& Of(std::size_t index) {
    std::optional<sim::Duty>& duty = duties_[index];
    if (duty) return *duty;
    duty.emplace();
    for (const plan::RepeatedSegments& part : program_.works[index].parts) {
      for (const plan::Segment& segment : part.segments) {
        for (const plan::Kernel& kernel : segment.kernels) {
          (IsLight(kernel, profile_) ? duty->memory_s : duty->tensor_s) +=
              part.count * model_.Time(kernel).value();
          has_fp8_ = has_fp8_ || IsFp8(kernel);
        }
      }
    }
    return *duty;
  }

  bool has_fp8() const { return has_fp8_; }

 private:
  const plan::Program& program_;
  const profiles::Profile& profile_;
  sim::KernelModel model_;
  std::vector<std::optional<sim::Duty>> duties_;
  bool has_fp8_ = false;
};

// Of the rank whose kernels take longest.
Use UseOf(const plan::Program& program, const profiles::Profile& profile) {
  WorkDuties works(program, profile);
  Use use;
  for (const internal::WorkCounts& counts : internal::CountWorks(program)) {
    sim::Duty sum;
    for (const auto& [work, times] : counts) {
      const sim::Duty& duty = works.Of(work);
      const double per_step = static_cast<double>(times) / program.num_steps;
      sum.tensor_s += duty.tensor_s * per_step;
      sum.memory_s += duty.memory_s * per_step;
    }
    if (sum.tensor_s + sum.memory_s > use.duty.tensor_s + use.duty.memory_s) use.duty = sum;
  }
  use.ratio = profile.Number(works.has_fp8() ? "clock.fp8.ratio" : "clock.bf16.ratio");
  return use;
}

sim::DutyRelief Relief(Use use, double step_time_s, double full_duty_ratio,
                       const sim::PowerBalance& balance) {
  use.duty.idle_s = std::max(0.0, step_time_s - use.duty.tensor_s - use.duty.memory_s);
  // The balance counts tensor time at the clock of full duty.
  use.duty.tensor_s *= use.ratio / full_duty_ratio;
  return sim::RelieveClock(use.duty, full_duty_ratio, balance);
}

profiles::Profile Scaled(const profiles::Profile& profile, double factor) {
  profiles::ProfileBuilder changes("duty relief");
  for (const std::string& key : profile.KeysUnder("clock.")) {
    if (!key.ends_with(".ratio")) continue;
    profiles::Parameter parameter = profile.Get(key);
    parameter.value = std::min(1.0, parameter.value * factor);
    if (parameter.strict) parameter.strict = std::min(1.0, *parameter.strict * factor);
    changes.Set(key, parameter);
  }
  return profiles::MergeProfiles(profile.name(), {profile, std::move(changes).Build()});
}

}  // namespace

bool HasPowerBalance(const profiles::Profile& profile) {
  return sim::HasKernels(profile) && profile.has("clock.duty_relief.enabled");
}

bool FollowsPowerBalance(const profiles::Profile& profile) {
  return HasPowerBalance(profile) && sim::ReadPowerBalance(profile).enabled;
}

sim::DutyRelief EstimateDutyRelief(const plan::Program& program, const profiles::Profile& full_duty,
                                   const profiles::Profile& simulated, double step_time_s) {
  return Relief(UseOf(program, simulated), step_time_s, UseOf(program, full_duty).ratio,
                sim::ReadPowerBalance(full_duty));
}

profiles::Profile RelievedProfile(
    const plan::Program& program, const profiles::Profile& full_duty,
    const std::function<double(const profiles::Profile&)>& step_time_s) {
  const sim::PowerBalance balance = sim::ReadPowerBalance(full_duty);
  const double full_duty_ratio = UseOf(program, full_duty).ratio;
  profiles::Profile profile = full_duty;
  double ratio = full_duty_ratio;
  for (int round = 0; round < kMaxRounds; ++round) {
    const double next =
        Relief(UseOf(program, profile), step_time_s(profile), full_duty_ratio, balance).clock_ratio;
    profile = Scaled(full_duty, next / full_duty_ratio);
    if (std::fabs(next - ratio) < kConverged) break;
    ratio = next;
  }
  return profile;
}

}  // namespace isthmus::studies
