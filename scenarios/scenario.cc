#include "scenarios/scenario.h"

#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/hash.h"
#include "scenarios/changes.h"
#include "scenarios/internal/assumptions.h"
#include "scenarios/internal/custom_fabric.h"
#include "scenarios/internal/fields.h"
#include "scenarios/internal/profile_file.h"
#include "scenarios/internal/reader.h"
#include "scenarios/internal/recorder.h"
#include "scenarios/internal/resolve.h"
#include "scenarios/internal/sources.h"
#include "scenarios/internal/yaml_text.h"
#include "topology/check_spec.h"

namespace isthmus::scenarios {
namespace {

using namespace internal;

// Whether a value, or the map or list it lies in, was filled in.
bool IsDerived(const Resolution& resolution, std::string_view path) {
  while (!resolution.derived.contains(std::string(path))) {
    const std::size_t dot = path.rfind('.');
    if (dot == std::string_view::npos) return false;
    path = path.substr(0, dot);
  }
  return true;
}

// Gives every value of the effective tree the place it was written at.
void Annotate(Node& node, const std::string& path, const Resolution& resolution) {
  for (Node::Entry& entry : node.entries) {
    Annotate(entry.value, JoinPath(path, entry.key), resolution);
  }
  for (std::size_t index = 0; index < node.items.size(); ++index) {
    Annotate(node.items[index], JoinPath(path, fmt::format("{}", index)), resolution);
  }
  const Place place = Locate(resolution.root, path);
  // A figure that is written without its source has its place one key higher.
  const bool is_written = place.is_exact ? !place.node->is_null() : place.node->is_scalar();
  if (is_written) {
    node.origin = place.node->origin;
  } else if (IsDerived(resolution, path)) {
    node.origin = {Origin::Kind::kDerived, {}, 0, 0};
  }
}

// What says how things are known or called, not what they are.
bool IsProse(std::string_view key) {
  constexpr std::array kKeys = {"name", "description", "source", "mark", "assumptions"};
  for (const std::string_view prose : kKeys) {
    if (key == prose) return true;
  }
  return false;
}

void AddToHash(const Node& node, base::HashBuilder& hash) {
  hash.Add(node.text);
  hash.Add(static_cast<std::uint64_t>(node.items.size()));
  for (const Node& item : node.items) AddToHash(item, hash);
  for (const Node::Entry& entry : node.entries) {
    if (IsProse(entry.key) && !entry.value.is_map()) continue;
    // A figure of a cluster is its value, with or without a source beside it.
    const Node* figure = entry.value.Find("value");
    const bool is_figure = figure != nullptr && figure->is_scalar();
    hash.Add(entry.key);
    AddToHash(is_figure ? *figure : entry.value, hash);
  }
}

std::uint64_t HashOf(Node effective, const profiles::Profile& profile,
                     const std::vector<OtherJob>& other_jobs) {
  std::erase_if(effective.entries,
                [](const Node::Entry& entry) { return entry.key == "training"; });
  base::HashBuilder hash;
  AddToHash(effective, hash);
  hash.Add(profile.Hash());
  for (const OtherJob& job : other_jobs) hash.Add(job.scenario.hash);
  return hash.digest();
}

// A profile that is of a GPU must be of the one that the other job's nodes have.
void CheckGpuOfProfile(Resolution& resolution, const SearchPaths& search) {
  const std::string& profile = resolution.spec.profile;
  const std::string& gpu = GroupsOf(resolution.spec).front()->gpu;
  if (profile == gpu || !FindShipped(FileKind::kGpu, profile, search)) return;
  resolution.Complain("profile",
                      fmt::format("is of the GPU {}, but its nodes have {}", profile, gpu),
                      "leave it out: their own is taken");
}

// The profile a scenario names, or that of its GPUs.
profiles::Profile ProfileOf(Resolution& resolution, Sources& sources, const SearchPaths& search) {
  ScenarioSpec& spec = resolution.spec;
  std::string key_path = "profile";
  if (spec.profile.empty()) {
    const std::vector<const topology::NodeGroup*> groups = GroupsOf(spec);
    key_path = fmt::format("cluster.node_groups.{}.gpu", groups.front()->name);
    spec.profile = groups.front()->gpu;
    resolution.derived.insert("profile");
    if (spec.cluster.ranks_share == topology::RanksShare::kCores &&
        !FindShipped(FileKind::kGpu, spec.profile, search)) {
      if (resolution.purpose == Purpose::kExecute) return {};
      resolution.Complain("profile",
                          fmt::format("is missing: what the machine behind cluster {} can do has "
                                      "to be measured there",
                                      spec.cluster.name),
                          "`isthmus calibrate -o cpu-host.yaml`, then `profile: cpu-host.yaml`");
      return {};
    }
    for (const topology::NodeGroup* group : groups) {
      if (group->gpu == spec.profile) continue;
      resolution.Complain(fmt::format("cluster.node_groups.{}.gpu", group->name),
                          "node groups with different GPUs are known but not built yet",
                          "give one `profile` for all");
    }
  } else if (resolution.is_other_job) {
    CheckGpuOfProfile(resolution, search);
  }
  const Place place = Locate(resolution.root, key_path);
  return ReadProfile(sources, search, resolution.diagnostics, spec.profile, place.node->origin,
                     key_path);
}

// What a scenario is resolved from.
struct Given {
  Node root;
  Sources& sources;
  const SearchPaths& search;
  Diagnostics& diagnostics;
  std::string default_name;
  Purpose purpose = Purpose::kPredict;
  bool is_other_job = false;
};

Scenario Resolve(Given given, const std::vector<std::string>& overrides);

// The cluster of `resolution`, sized, as a file would have it.
Node ClusterNode(const Resolution& resolution) {
  Node cluster = *resolution.root.Find("cluster");
  Node& groups = *cluster.Find("node_groups");
  for (const topology::NodeGroup& group : resolution.spec.cluster.node_groups) {
    Node& node = *groups.Find(group.name);
    const Origin origin = node.origin;
    node.At("num_nodes", origin) = Node::Scalar(fmt::format("{}", group.num_nodes), origin);
  }
  cluster.Erase("rank_devices");
  return cluster;
}

// Loads one of the jobs beside the one that is resolved; its mistakes are added to ours.
void LoadOtherJob(const Given& given, const Resolution& resolution, std::size_t index,
                  std::vector<OtherJob>& jobs) {
  const OtherJobSpec& spec = resolution.spec.other_jobs[index];
  const std::string path = fmt::format("other_jobs.{}", index);
  const Place name = Locate(resolution.root, JoinPath(path, "scenario"));
  const Place nodes = Locate(resolution.root, JoinPath(path, "nodes"));
  Sources::Found found;
  if (!given.sources.FindFile(spec.scenario, FileKind::kScenario, name.node->origin,
                              JoinPath(path, "scenario"), found)) {
    return;
  }
  Diagnostics mistakes;
  Sources sources(given.search, mistakes);
  Node root = sources.ReadFile(found.path, found.label);
  try {
    if (!root.is_map()) mistakes.Throw();
    for (const char* key : {"cluster", "nodes", "on_nodes"}) root.Erase(key);
    root.At("cluster", nodes.node->origin) = ClusterNode(resolution);
    root.At("on_nodes", nodes.node->origin) = *nodes.node;
    OtherJob job{spec.name, nodes.node->text, spec.start_after,
                 Resolve({std::move(root), sources, given.search, mistakes,
                          found.path.stem().string(), given.purpose, true},
                         spec.set)};
    if (job.name.empty()) job.name = job.scenario.name;
    jobs.push_back(std::move(job));
  } catch (const base::ScenarioError&) {
    given.diagnostics.Take(std::move(mistakes));
  }
}

// Equal names get numbers, so that reports can tell whom they mean.
void TellApart(const std::string& first, std::vector<OtherJob>& jobs) {
  std::map<std::string, int> count = {{first, 1}};
  for (OtherJob& job : jobs) {
    const int number = ++count[job.name];
    if (number > 1) job.name += fmt::format(" ({})", number);
  }
}

Scenario Resolve(Given given, const std::vector<std::string>& overrides) {
  auto& [root, sources, search, diagnostics, default_name, purpose, is_other_job] = given;
  if (sources.failed()) diagnostics.Throw();
  for (const std::string& assignment : overrides) sources.Set(root, assignment);
  sources.ExpandPresets(root);
  ScenarioSpec spec;
  Reader reader(root, "", diagnostics);
  Fields(reader, spec);
  reader.Finish();
  if (!root.is_map()) diagnostics.Throw();
  if (spec.name.empty()) spec.name = default_name;

  Resolution resolution{spec, root, diagnostics, {"name"}, purpose, nullptr, is_other_job};
  Scenario scenario;
  resolution.load_other_jobs = [&] {
    // First, since mistakes of their files have paths of their own.
    std::vector<std::size_t> sound;
    for (std::size_t index = 0; index < spec.other_jobs.size(); ++index) {
      const bool is_sound = !given.diagnostics.HasAt("other_jobs") &&
                            resolution.is_sound(fmt::format("other_jobs.{}", index));
      if (is_sound) sound.push_back(index);
    }
    for (const std::size_t index : sound)
      LoadOtherJob(given, resolution, index, scenario.other_jobs);
  };
  scenario.job = ResolveJob(resolution);
  scenario.profile = ProfileOf(resolution, sources, search);
  diagnostics.ThrowIfAny();
  scenario.profile = WithParameters(resolution, scenario.profile);
  ResolveKernels(resolution, scenario.profile, scenario.job);
  diagnostics.ThrowIfAny();
  SplitLayers(resolution, scenario.profile, scenario.job);

  Node effective;
  Recorder recorder(effective);
  Fields(recorder, spec);
  Annotate(effective, "", resolution);
  scenario.hash = HashOf(effective, scenario.profile, scenario.other_jobs);
  scenario.effective_yaml = PrintYaml(effective, Comments::kOrigins);
  scenario.assumptions = AssumptionsOf(spec);
  for (std::string& assumption : LaneAssumptions(scenario.job)) {
    scenario.assumptions.push_back(std::move(assumption));
  }
  for (std::string& assumption : FrameworkAssumptions(resolution)) {
    scenario.assumptions.push_back(std::move(assumption));
  }
  for (std::string& assumption : ProfileAssumptions(resolution, scenario.profile)) {
    scenario.assumptions.push_back(std::move(assumption));
  }
  TellApart(spec.name, scenario.other_jobs);
  for (const OtherJob& job : scenario.other_jobs) scenario.assumptions.push_back(AssumptionOf(job));
  scenario.name = std::move(spec.name);
  scenario.description = std::move(spec.description);
  scenario.cluster = std::move(spec.cluster);
  if (!spec.on_nodes.empty())
    scenario.cluster.rank_devices = GpusOn(scenario.cluster, spec.on_nodes);
  scenario.metric = spec.step.metric;
  scenario.training = std::move(spec.training);
  scenario.seed = static_cast<std::uint64_t>(spec.seed);
  return scenario;
}

// The same where overrides may need to know what the scenario says without them.
Scenario ResolveOverBase(const Node& root, Sources& sources,
                         const std::vector<std::string>& overrides, const SearchPaths& search,
                         Diagnostics& diagnostics, const std::string& default_name,
                         Purpose purpose) {
  const auto resolve = [&](const std::vector<std::string>& assignments) {
    return Resolve({root, sources, search, diagnostics, default_name, purpose}, assignments);
  };
  return resolve(MakeAbsolute(overrides, resolve));
}

}  // namespace

Scenario LoadScenario(const std::filesystem::path& path, const std::vector<std::string>& overrides,
                      const SearchPaths& search, Purpose purpose) {
  Diagnostics diagnostics;
  Sources sources(search, diagnostics);
  const Node root = sources.ReadFile(path);
  return ResolveOverBase(root, sources, overrides, search, diagnostics, path.stem().string(),
                         purpose);
}

Scenario ParseScenario(std::string_view text, const std::string& label,
                       const std::vector<std::string>& overrides, const SearchPaths& search,
                       const std::filesystem::path& folder) {
  Diagnostics diagnostics;
  Sources sources(search, diagnostics);
  const Node root = sources.ReadText(text, label, folder);
  return ResolveOverBase(root, sources, overrides, search, diagnostics,
                         std::filesystem::path(label).stem().string(), Purpose::kPredict);
}

Scenario ParseScenario(const ScenarioSpec& spec, const SearchPaths& search) {
  const std::string label = spec.name.empty() ? "scenario" : spec.name;
  return ParseScenario(WriteScenario(spec), label, {}, search);
}

profiles::Profile LoadProfile(const std::string& name, const SearchPaths& search) {
  Diagnostics diagnostics;
  Sources sources(search, diagnostics);
  const Origin command{Origin::Kind::kFile, name, 0, 0};
  profiles::Profile profile = ReadProfile(sources, search, diagnostics, name, command, "");
  diagnostics.ThrowIfAny();
  return profile;
}

topology::ClusterSpec LoadCluster(const std::string& name, std::optional<int> num_nodes,
                                  const SearchPaths& search) {
  Diagnostics diagnostics;
  Sources sources(search, diagnostics);
  Node root = Node::Map({Origin::Kind::kFile, name, 0, 0});
  root.At("cluster", root.origin) = Node::Scalar(name, root.origin);
  sources.ExpandPresets(root);
  diagnostics.ThrowIfAny();
  topology::ClusterSpec cluster;
  Reader reader(*root.Find("cluster"), "cluster", diagnostics);
  Fields(reader, cluster);
  reader.Finish();
  diagnostics.ThrowIfAny();
  if (num_nodes && cluster.node_groups.size() > 1) {
    diagnostics.AddAt(root, "cluster.node_groups",
                      "several node groups say how many nodes there are", "leave --nodes out");
  }
  for (topology::NodeGroup& group : cluster.node_groups) {
    const std::string path = fmt::format("cluster.node_groups.{}.num_nodes", group.name);
    if (num_nodes) group.num_nodes = *num_nodes;
    if (!num_nodes && !Locate(root, path).is_exact) group.num_nodes = kDefaultNodes;
  }
  SettleCustomFabric(root, cluster, diagnostics);
  for (const topology::SpecMistake& mistake : topology::MistakesOf(cluster)) {
    diagnostics.AddAt(root, "cluster." + mistake.path, mistake.what, mistake.hint);
  }
  diagnostics.ThrowIfAny();
  return cluster;
}

std::string WriteCluster(const topology::ClusterSpec& cluster) {
  topology::ClusterSpec copy = cluster;  // archives take what they visit by mutable reference
  Node tree;
  Recorder recorder(tree);
  Fields(recorder, copy);
  return PrintYaml(tree, Comments::kNone);
}

}  // namespace isthmus::scenarios
