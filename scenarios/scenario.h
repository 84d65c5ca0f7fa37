#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "plan/job.h"
#include "profiles/profile.h"
#include "scenarios/shipped.h"
#include "scenarios/spec.h"
#include "topology/cluster_spec.h"

/// From a file to a validated scenario.
namespace isthmus::scenarios {

struct OtherJob;

/// What is asked: a job on a cluster, with what is known about the machine.
///
/// An immutable value once loaded. Promises all that plan::Job asks for, and that the cluster can
/// be built and has room for the job's ranks.
struct Scenario {
  std::string name;
  std::string description;
  plan::Job job;
  topology::ClusterSpec cluster;
  profiles::Profile profile;
  StepMetric metric = StepMetric::kFull;
  std::uint64_t seed = 1;
  Training training;
  /// What was assumed: by the file's author, by the models' files, by the cluster's.
  std::vector<std::string> assumptions;
  /// Jobs on other nodes of the same cluster, at the same time.
  std::vector<OtherJob> other_jobs;
  /// Fingerprint of all that decides a prediction: effective values and the profile. Names,
  /// descriptions, sources and the way the values are spread over files don't enter, nor does
  /// `training`.
  std::uint64_t hash = 0;

  /// The effective scenario as YAML, the origin of each value beside it (`file:line`, `--set key`,
  /// `default` or `derived`). Loading it gives the same hash.
  std::string effective_yaml;
};

/// A job beside another: begins after a while, and again as soon as it is over.
struct OtherJob {
  std::string name;   ///< no two jobs of a scenario have the same
  std::string nodes;  ///< that it takes: "8-11"
  base::Seconds start_after{0};
  Scenario scenario;  ///< on the first job's cluster; its rank_devices are on those nodes
};

/// What a scenario is loaded for.
enum class Purpose : std::uint8_t {
  kPredict,  ///< the profile must have the kernels that modules ask for
  kExecute,  ///< to plan or to run it: what the profile knows doesn't matter
};

/// Loads the file at `path`, what it extends and names, and puts `overrides` (`key.path=value`) on
/// top, the later one of a key; relative ones (changes.h) are of what all others give. Files named
/// by name are looked for in `search`.
///
/// Throws base::ScenarioError with every mistake found, in the order of their places. Cost: a few
/// milliseconds, most of it reading the profile.
Scenario LoadScenario(const std::filesystem::path& path,
                      const std::vector<std::string>& overrides = {},
                      const SearchPaths& search = DefaultSearchPaths(),
                      Purpose purpose = Purpose::kPredict);

/// The same for a text in memory; `label` stands for the file's name in messages, and relative
/// names in the text start at `folder`.
Scenario ParseScenario(std::string_view text, const std::string& label,
                       const std::vector<std::string>& overrides = {},
                       const SearchPaths& search = DefaultSearchPaths(),
                       const std::filesystem::path& folder = {});

/// The same for a scenario made by a program: written, then parsed.
Scenario ParseScenario(const ScenarioSpec& spec, const SearchPaths& search = DefaultSearchPaths());

/// What `isthmus scenario show` prints.
inline const std::string& ShowScenario(const Scenario& scenario) { return scenario.effective_yaml; }

/// A profile by name (a GPU's or a part), with what it includes, outside of any scenario.
profiles::Profile LoadProfile(const std::string& name,
                              const SearchPaths& search = DefaultSearchPaths());

/// Nodes of a cluster that doesn't say how many it has.
inline constexpr int kDefaultNodes = 4;

/// A cluster by name or from a file, outside of any scenario. `num_nodes` is that of its node
/// group, whatever the file says; several groups say themselves. Throws base::ScenarioError with
/// every mistake: what it returns can be built.
topology::ClusterSpec LoadCluster(const std::string& name, std::optional<int> num_nodes = {},
                                  const SearchPaths& search = DefaultSearchPaths());

/// The cluster as a file that LoadCluster reads back as the same spec.
std::string WriteCluster(const topology::ClusterSpec& cluster);

}  // namespace isthmus::scenarios
