#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scenarios/internal/resolve.h"

// What modules ask of the machine's profile: kernels it has been measured with.
namespace isthmus::scenarios::internal {
namespace {

using plan::AttentionKernel;

constexpr std::array<std::pair<AttentionKernel, const char*>, 4> kFusedKernels = {{
    {AttentionKernel::kCudnn, "cudnn"},
    {AttentionKernel::kFlash3, "flash3"},
    {AttentionKernel::kFlash2, "flash2"},
    {AttentionKernel::kFlash1, "flash1"},
}};

bool HasKernel(const profiles::Profile& profile, AttentionKernel kernel) {
  if (kernel == AttentionKernel::kUnfused) return profile.has("attention.unfused.gemm_share");
  const auto* known = std::find_if(kFusedKernels.begin(), kFusedKernels.end(),
                                   [&](const auto& entry) { return entry.first == kernel; });
  return profile.has(fmt::format("attention.{}.forward.causal.rate", known->second));
}

std::vector<std::string> KernelsOf(const profiles::Profile& profile) {
  std::vector<std::string> names;
  for (const auto& [kernel, name] : kFusedKernels) {
    if (HasKernel(profile, kernel)) names.emplace_back(name);
  }
  if (HasKernel(profile, AttentionKernel::kUnfused)) names.emplace_back("unfused");
  return names;
}

// The first in the release's order that the machine has; failing that the first it has at all.
AttentionKernel PreferredKernel(const profiles::Profile& profile,
                                const plan::FrameworkRelease& framework) {
  for (const AttentionKernel kernel : framework.defaults.attention) {
    if (HasKernel(profile, kernel)) return kernel;
  }
  for (const auto& [kernel, name] : kFusedKernels) {
    if (HasKernel(profile, kernel)) return kernel;
  }
  return AttentionKernel::kUnfused;
}

const char* ProfileName(plan::DType dtype) {
  switch (dtype) {
    case plan::DType::kFp8:
      return "fp8";
    case plan::DType::kBf16:
    case plan::DType::kFp16:
      return "bf16";
    case plan::DType::kFp32:
      return "fp32";
  }
  return "";
}

}  // namespace

void ResolveKernels(Resolution& resolution, const profiles::Profile& profile, plan::Job& job) {
  // A profile without kernels of a kind serves for planning; there is nothing to choose from.
  const bool has_products = !profile.KeysUnder("gemm.").empty();
  const std::vector<std::string> names = KernelsOf(profile);
  for (ModuleSpec& module : resolution.spec.modules) {
    const std::string dtype = ProfileName(module.settings.precision);
    if (has_products && !profile.has(fmt::format("gemm.{}.peak_rate", dtype))) {
      resolution.Complain(ModulePath(module, "precision"),
                          fmt::format("profile {} has no kernels of {}", profile.name(), dtype),
                          "use bf16 or fp16, or give the profile gemm." + dtype + ".*");
    }
    const std::string key = ModulePath(module, "attention");
    if (names.empty() || HasKernel(profile, module.settings.attention)) continue;
    if (resolution.is_given(key)) {
      resolution.Complain(key,
                          fmt::format("profile {} has no such attention kernel", profile.name()),
                          fmt::format("it has: {}", fmt::join(names, ", ")));
      continue;
    }
    module.settings.attention = PreferredKernel(profile, *module.settings.framework);
    resolution.derived.insert(key);
    for (plan::Module& planned : job.modules) {
      if (planned.name == module.name) planned.settings.attention = module.settings.attention;
    }
  }
}

}  // namespace isthmus::scenarios::internal
