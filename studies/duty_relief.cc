#include "studies/duty_relief.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/cost/kernel_model.h"

namespace isthmus::studies {
namespace {

constexpr int kMaxRounds = 4;
constexpr double kConverged = 1e-3;

struct Use {
  sim::Duty duty;  // without idle
  double ratio = 1;
};

// Those that don't reach the power limit draw what memory-bound ones do.
bool IsLight(const plan::Kernel& kernel) {
  const auto* attention = std::get_if<plan::Attention>(&kernel);
  return std::holds_alternative<plan::MemoryBound>(kernel) ||
         (attention != nullptr && (attention->kernel == plan::AttentionKernel::kFlash1 ||
                                   attention->kernel == plan::AttentionKernel::kFlash2));
}

bool IsFp8(const plan::Kernel& kernel) {
  const auto* gemm = std::get_if<plan::Gemm>(&kernel);
  return gemm != nullptr && gemm->dtype == plan::DType::kFp8;
}

// Kernel seconds of the program's works, each worked out once.
class WorkDuties {
 public:
  WorkDuties(const plan::Program& program, const profiles::Profile& profile)
      : program_(program), model_(profile), duties_(program.works.size()) {}

  const sim::Duty& Of(std::size_t index) {
    std::optional<sim::Duty>& duty = duties_[index];
    if (duty) return *duty;
    duty.emplace();
    for (const plan::RepeatedSegments& part : program_.works[index].parts) {
      for (const plan::Segment& segment : part.segments) {
        for (const plan::Kernel& kernel : segment.kernels) {
          (IsLight(kernel) ? duty->memory_s : duty->tensor_s) +=
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
  sim::KernelModel model_;
  std::vector<std::optional<sim::Duty>> duties_;
  bool has_fp8_ = false;
};

// Of the rank whose kernels take longest.
Use UseOf(const plan::Program& program, const profiles::Profile& profile) {
  WorkDuties works(program, profile);
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;  // role, table
  Use use;
  for (std::size_t rank = 0; rank < program.role_of_rank.size(); ++rank) {
    const auto kind = std::pair(program.role_of_rank[rank], program.table_of_rank[rank]);
    if (!seen.insert(kind).second) continue;
    sim::Duty sum;
    for (const plan::Op& op : program.roles[kind.first].ops) {
      if (op.kind != plan::OpKind::kCompute && op.kind != plan::OpKind::kOptimizer) continue;
      const sim::Duty& duty = works.Of(program.tables[kind.second].works[op.size]);
      sum.tensor_s += duty.tensor_s / program.num_steps;
      sum.memory_s += duty.memory_s / program.num_steps;
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
    changes.Set(key, parameter);
  }
  return profiles::MergeProfiles(profile.name(), {profile, std::move(changes).Build()});
}

}  // namespace

sim::DutyRelief EstimateDutyRelief(const plan::Program& program, const profiles::Profile& profile,
                                   double step_time_s) {
  const Use use = UseOf(program, profile);
  return Relief(use, step_time_s, use.ratio, sim::ReadPowerBalance(profile));
}

profiles::Profile WithRelievedClock(const StepSimulation& simulation) {
  const scenarios::Scenario& scenario = simulation.scenario();
  const sim::PowerBalance balance = sim::ReadPowerBalance(scenario.profile);
  const double full_duty = UseOf(simulation.program(), scenario.profile).ratio;
  profiles::Profile profile = scenario.profile;
  double ratio = full_duty;
  for (int round = 0; round < kMaxRounds; ++round) {
    const double step_time_s = simulation.StepTime(profile, scenario.cluster);
    const Use use = UseOf(simulation.program(), profile);
    const double next = Relief(use, step_time_s, full_duty, balance).clock_ratio;
    profile = Scaled(scenario.profile, next / full_duty);
    if (std::fabs(next - ratio) < kConverged) break;
    ratio = next;
  }
  return profile;
}

}  // namespace isthmus::studies
