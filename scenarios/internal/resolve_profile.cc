#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "profiles/kernel_tables.h"
#include "profiles/parameter_range.h"
#include "scenarios/internal/resolve.h"

// What modules ask of the machine's profile: kernels it has been measured with.
namespace isthmus::scenarios::internal {
namespace {

using plan::AttentionKernel;

constexpr std::array kFusedKernels = {AttentionKernel::kCudnn, AttentionKernel::kFlash3,
                                      AttentionKernel::kFlash2, AttentionKernel::kFlash1};

bool HasKernel(const profiles::Profile& profile, AttentionKernel kernel) {
  if (kernel == AttentionKernel::kUnfused) {
    // Two matrix products: without any there is no kernel either.
    return profile.has("attention.unfused.gemm_share") && !profile.KeysUnder("gemm.").empty();
  }
  return profile.has(fmt::format("attention.{}.forward.causal.rate", plan::ToText(kernel)));
}

std::vector<std::string> KernelsOf(const profiles::Profile& profile) {
  std::vector<std::string> names;
  for (const AttentionKernel kernel : kFusedKernels) {
    if (HasKernel(profile, kernel)) names.emplace_back(plan::ToText(kernel));
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
  for (const AttentionKernel kernel : kFusedKernels) {
    if (HasKernel(profile, kernel)) return kernel;
  }
  return AttentionKernel::kUnfused;
}

// Whether a key `attention.KERNEL.*` is of a kernel that some module runs.
bool IsOfUsedKernel(const std::string& key, const std::vector<ModuleSpec>& modules) {
  return std::any_of(modules.begin(), modules.end(), [&](const ModuleSpec& module) {
    const AttentionKernel kernel = module.settings.attention;
    return kernel != AttentionKernel::kUnfused &&
           key.starts_with(fmt::format("attention.{}.", plan::ToText(kernel)));
  });
}

std::optional<double> ParseNumber(const std::string& text) {
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) return {};
  return number;
}

// The links that the collectives were measured on; the cluster says what a job has.
bool IsOfTheFits(const std::string& key) {
  return key == "device.nvlink_bandwidth" || key == "device.nic_bandwidth";
}

// The profile's parameter with another value; nothing, after a complaint, where it can't have it.
std::optional<profiles::Parameter> ChangedParameter(Resolution& resolution,
                                                    const profiles::Profile& profile,
                                                    const std::string& path, const std::string& key,
                                                    double value) {
  if (!profile.has(key)) {
    std::vector<std::string> keys;
    for (const auto& [name, parameter] : profile.parameters()) keys.push_back(name);
    const std::optional<std::string> closest = base::ClosestName(key, keys);
    resolution.Complain(path, fmt::format("profile {} has no parameter {}", profile.name(), key),
                        closest ? "it has " + *closest : "");
    return std::nullopt;
  }
  if (IsOfTheFits(key)) {
    resolution.Complain(path,
                        fmt::format("{} is the link that the collectives were measured on", key),
                        "change that of the cluster: cluster.node_groups.NAME.nvlink_bandwidth, "
                        "nic_bandwidth");
    return std::nullopt;
  }
  profiles::Parameter changed = profile.Get(key);
  const profiles::ParameterRange range = profiles::RangeOf(key, changed.unit);
  if (!range.Holds(value)) {
    resolution.Complain(path,
                        fmt::format("{} {:g}{} is out of range", key, value,
                                    changed.unit == "1" ? "" : " " + changed.unit),
                        "allowed: " + profiles::ToText(range));
    return std::nullopt;
  }
  changed.value = value;
  changed.mark = profiles::Mark::kAssumed;
  changed.source = "the scenario";
  changed.residual.reset();
  changed.strict.reset();
  return changed;
}

// A profile that `isthmus calibrate` wrote (profiles/README.md) has attention of one kind. A core
// has no unit that takes fp16 as fast as bf16, so there each type needs its own products.
void ResolveTables(Resolution& resolution, const profiles::Profile& profile,
                   const std::string& tables) {
  if (resolution.purpose != Purpose::kPredict) return;
  for (const ModuleSpec& module : resolution.spec.modules) {
    const plan::DType type = module.settings.precision;
    const std::string dtype = tables == "cpu" ? plan::ToText(type) : plan::RateKey(type);
    if (!profile.KeysUnder(fmt::format("{}.gemm.{}.", tables, dtype)).empty()) continue;
    resolution.Complain(ModulePath(module, "precision"),
                        fmt::format("profile {} has no kernels of {}", profile.name(), dtype),
                        "`isthmus calibrate` measures fp32 and bf16; `isthmus run` needs no "
                        "profile");
  }
}

}  // namespace

profiles::Profile WithParameters(Resolution& resolution, const profiles::Profile& profile) {
  const std::vector<std::string>& parameters = resolution.spec.parameters;
  std::map<std::string, profiles::Parameter> changes;  // of a key set twice the last counts
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    const std::string path = fmt::format("parameters.{}", index);
    const std::size_t equals = parameters[index].find('=');
    const std::string key = parameters[index].substr(0, equals);
    const std::optional<double> value = equals == std::string::npos
                                            ? std::nullopt
                                            : ParseNumber(parameters[index].substr(equals + 1));
    if (!value) {
      resolution.Complain(path, fmt::format("found \"{}\", expected key=number", parameters[index]),
                          "as in clock.bf16.ratio=0.85");
      continue;
    }
    if (const auto changed = ChangedParameter(resolution, profile, path, key, *value))
      changes[key] = *changed;
  }
  if (parameters.empty()) return profile;
  profiles::ProfileBuilder builder("parameters");
  for (const auto& [key, parameter] : changes) builder.Set(key, parameter);
  return profiles::MergeProfiles(profile.name(), {profile, std::move(builder).Build()});
}

std::vector<std::string> FrameworkAssumptions(const Resolution& resolution) {
  const plan::FrameworkRelease& framework = *resolution.spec.framework;
  std::vector<std::string> assumptions;
  for (const plan::DefaultReason& reason : framework.reasons) {
    if (reason.mark != plan::DefaultMark::kChosenAfterSeeingRuns) continue;
    // Scenarios have no default of their framework for the schedule.
    if (reason.key == "defer_embedding_wgrad") continue;
    const std::string key(reason.key);
    const bool is_taken = std::ranges::any_of(
        resolution.spec.modules,
        [&](const ModuleSpec& module) { return !resolution.is_given(ModulePath(module, key)); });
    if (!is_taken) continue;
    assumptions.push_back(fmt::format("framework {}: {} {} (chosen after seeing runs)",
                                      framework.name, key, reason.text));
  }
  return assumptions;
}

std::vector<std::string> ProfileAssumptions(const Resolution& resolution,
                                            const profiles::Profile& profile) {
  std::vector<std::string> assumptions;
  const std::string& gpu = GroupsOf(resolution.spec).front()->gpu;
  if (resolution.is_given("profile") && profile.name() != gpu &&
      profiles::KernelTables(profile).empty()) {
    assumptions.push_back(
        fmt::format("profile {} stands for the cluster's GPU {}", profile.name(), gpu));
  }
  for (const std::string& parameter : resolution.spec.parameters) {
    assumptions.push_back(fmt::format("profile: {} by the scenario", parameter));
  }
  std::vector<std::string> chosen;
  for (const auto& [key, parameter] : profile.parameters()) {
    if (parameter.mark != profiles::Mark::kChosenAfterSeeingRuns) continue;
    if (key.starts_with("attention.") && !IsOfUsedKernel(key, resolution.spec.modules)) continue;
    chosen.push_back(parameter.strict ? fmt::format("{} {:g} (else {:g})", key, parameter.value,
                                                    *parameter.strict)
                                      : fmt::format("{} {:g}", key, parameter.value));
  }
  if (!chosen.empty()) {
    assumptions.push_back(fmt::format("profile {}: chosen after seeing runs: {}", profile.name(),
                                      fmt::join(chosen, ", ")));
  }
  return assumptions;
}

void ResolveKernels(Resolution& resolution, const profiles::Profile& profile, plan::Job& job) {
  const std::string tables = profiles::KernelTables(profile);
  if (!tables.empty()) return ResolveTables(resolution, profile, tables);
  // A profile without kernels of a kind serves for planning; there is nothing to choose from.
  const bool predicts = resolution.purpose == Purpose::kPredict;
  const bool has_products = !profile.KeysUnder("gemm.").empty();
  const std::vector<std::string> names = KernelsOf(profile);
  for (ModuleSpec& module : resolution.spec.modules) {
    const std::string dtype = plan::RateKey(module.settings.precision);
    if (predicts && has_products && !profile.has(fmt::format("gemm.{}.peak_rate", dtype))) {
      resolution.Complain(ModulePath(module, "precision"),
                          fmt::format("profile {} has no kernels of {}", profile.name(), dtype),
                          "use bf16 or fp16, or give the profile gemm." + dtype +
                              ".*; `isthmus run` needs no profile for it");
    }
    const std::string key = ModulePath(module, "attention");
    if (names.empty() || HasKernel(profile, module.settings.attention)) continue;
    if (resolution.is_given(key)) {
      if (!predicts) continue;
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
