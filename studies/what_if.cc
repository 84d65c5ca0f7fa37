#include "studies/what_if.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "scenarios/changes.h"
#include "studies/predict.h"

namespace isthmus::studies {
namespace {

// Loads the changed scenario. Its mistakes are at `--set key` there; a user wrote `--change`.
template <typename Load>
auto NamingChanges(const WhatIfOptions& options, const std::vector<scenarios::Change>& changes,
                   Load load) {
  try {
    return load();
  } catch (const base::ScenarioError& error) {
    std::vector<base::Diagnostic> diagnostics = error.diagnostics();
    for (base::Diagnostic& diagnostic : diagnostics) {
      const auto is_place = [&](const scenarios::Change& change) {
        return diagnostic.file == "--set " + change.key;
      };
      const bool is_written = std::ranges::any_of(options.changes, [&](const std::string& change) {
        return diagnostic.file == "--set " + change.substr(0, change.find('='));
      });
      if (!is_written && std::ranges::none_of(changes, is_place)) continue;
      diagnostic.file.replace(0, std::string("--set").size(), "--change");
    }
    throw base::ScenarioError(std::move(diagnostics));
  }
}

reports::Figures FiguresOf(const scenarios::Scenario& scenario, const WhatIfOptions& options) {
  reports::Figures figures =
      StepSimulation(scenario, options.network).PredictWithPath(options.commit).figures;
  if (!figures.has_times) {
    throw base::Error(fmt::format(
        "profile {}: its kernels are unknown, so there is no step time that a change could alter",
        scenario.profile.name()));
  }
  return figures;
}

// What the answer can't tell, or follows from more than the words of the change.
std::vector<std::string> NotesOn(const std::vector<scenarios::Change>& changes,
                                 const scenarios::Scenario& base,
                                 const reports::StepDifference& difference, sim::Network network) {
  constexpr double kHardly = 1e-4;
  const auto any = [&changes](auto is_such) {
    return std::ranges::any_of(changes, is_such, &scenarios::Change::key);
  };
  std::vector<std::string> notes;
  const bool is_hardly_seen = std::abs(static_cast<double>(difference.difference_ps())) <=
                              kHardly * static_cast<double>(difference.base.window_ps);
  const bool is_of_paths = any([](const std::string& key) {
    return key.starts_with("cluster.fabric") || key.starts_with("cluster.link_faults");
  });
  const bool is_of_cluster =
      any([](const std::string& key) { return key == "cluster" || key.starts_with("cluster."); });
  if (network == sim::Network::kNccl && (is_of_paths || (is_of_cluster && is_hardly_seen))) {
    notes.emplace_back(
        "nccl prices each message alone: shared links and detours don't show; ask --network flow");
  }
  const bool is_of_nics =
      any([](const std::string& key) { return key.ends_with(".nic_bandwidth"); });
  if (is_of_nics && !base.cluster.fabric.custom && topology::NumNodes(base.cluster) > 1) {
    notes.emplace_back(
        "uplinks are built for the NICs below them: their bandwidth changes with that of the NICs");
  }
  return notes;
}

}  // namespace

reports::StepDifference WhatIf(const WhatIfOptions& options) {
  if (options.changes.empty()) {
    throw base::Error(
        "whatif: no change is given\n  hint: --change key.path=value, as in --change "
        "cluster.nic.bandwidth=2x");
  }
  const auto load = [&](const std::vector<std::string>& overrides) {
    return scenarios::LoadScenario(options.scenario, overrides);
  };
  // Absolute once and for all: what the changes do must not move them.
  const std::vector<std::string> overrides = scenarios::MakeAbsolute(options.overrides, load);
  const scenarios::Scenario base = load(overrides);
  const std::vector<scenarios::Change> changes =
      NamingChanges(options, {}, [&] { return scenarios::ChangesOf(base, options.changes); });
  const scenarios::Scenario changed = NamingChanges(options, changes, [&] {
    std::vector<std::string> all = overrides;
    std::ranges::move(scenarios::OverridesOf(changes), std::back_inserter(all));
    return load(all);
  });

  reports::StepDifference difference =
      reports::TakeApart(FiguresOf(base, options), FiguresOf(changed, options), options.max_other);
  difference.network = options.network == sim::Network::kFlow ? "flow" : "nccl";
  for (const scenarios::Change& change : changes) {
    difference.changes.push_back({change.key, change.before, change.after});
  }
  std::ranges::move(NotesOn(changes, base, difference, options.network),
                    std::back_inserter(difference.notes));
  return difference;
}

}  // namespace isthmus::studies
