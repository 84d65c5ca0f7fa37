#include "sim/cost/kernel_model.h"

#include <variant>

#include <fmt/core.h>

#include "base/error.h"
#include "base/text.h"

namespace isthmus::sim {
namespace {

// Rounding in the sums of two formulas that may coincide.
constexpr double kTolerance = 1e-9;

struct Describe {
  std::string operator()(const plan::Gemm& gemm) const {
    return fmt::format("matrix product {} x {} x {}", gemm.m, gemm.n, gemm.k);
  }
  std::string operator()(const plan::Attention& attention) const {
    return fmt::format("attention of {} x {} tokens and {} heads", attention.query_len,
                       attention.kv_len, attention.heads);
  }
  std::string operator()(const plan::MemoryBound& kernel) const {
    return fmt::format("memory-bound kernel of {}", base::FormatBytes(kernel.bytes));
  }
};

}  // namespace

KernelModel::KernelModel(const profiles::Profile& profile)
    : profile_name_(profile.name()),
      clock_(profile),
      gemm_(profile, clock_),
      attention_(profile, clock_),
      memory_(profile),
      roofline_(profile),
      launch_gap_(profile.Time("host.launch_gap")) {}

base::Seconds KernelModel::Time(const plan::Kernel& kernel) const {
  base::Seconds time(0);
  if (const auto* gemm = std::get_if<plan::Gemm>(&kernel)) {
    time = gemm_.Time(*gemm);
  } else if (const auto* attention = std::get_if<plan::Attention>(&kernel)) {
    time = attention_.Time(*attention);
  } else {
    time = memory_.Time(std::get<plan::MemoryBound>(kernel));
  }
  const base::Seconds bound = roofline_.Time(kernel);
  if (time < bound * (1 - kTolerance)) {
    throw base::Error(
        fmt::format("error: profile {} makes a {} take {}, less than the data sheet's {}\n"
                    "  hint: check its rates against device.*",
                    profile_name_, std::visit(Describe{}, kernel), base::FormatSeconds(time),
                    base::FormatSeconds(bound)));
  }
  return time;
}

base::Seconds KernelModel::LaunchGap(const plan::Kernel& kernel) const {
  return launch_gap_ * NumLaunches(kernel);
}

}  // namespace isthmus::sim
