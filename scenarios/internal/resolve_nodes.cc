// Which nodes of the cluster the job and the jobs beside it take.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "scenarios/internal/resolve.h"

namespace isthmus::scenarios::internal {
namespace {

// The group of a node and the node's first GPU; the node must exist.
std::pair<const topology::NodeGroup*, int> GroupOf(const topology::ClusterSpec& cluster, int node) {
  int first_gpu = 0;
  for (const topology::NodeGroup& group : cluster.node_groups) {
    if (node < group.num_nodes) return {&group, first_gpu + node * group.gpus_per_node};
    node -= group.num_nodes;
    first_gpu += group.num_nodes * group.gpus_per_node;
  }
  return {nullptr, 0};
}

bool CheckExist(Resolution& resolution, const std::string& path, const std::vector<int>& nodes) {
  const int num_nodes = topology::NumNodes(resolution.spec.cluster);
  const int highest = *std::ranges::max_element(nodes);
  if (highest < num_nodes) return true;
  resolution.Complain(path, fmt::format("there is no node {}", highest),
                      fmt::format("allowed: 0 to {}, or give more `nodes`", num_nodes - 1));
  return false;
}

// The nodes that the job's own ranks are on.
std::vector<int> OwnNodes(const ScenarioSpec& spec) {
  const std::vector<base::DeviceId>& devices = spec.cluster.rank_devices;
  const auto num_ranks = static_cast<std::size_t>(*spec.num_gpus);
  std::vector<int> own;
  std::size_t ranks = 0;
  const auto count = static_cast<int>(spec.on_nodes.size());
  for (int index = 0; index < (count > 0 ? count : topology::NumNodes(spec.cluster)); ++index) {
    const int node = count > 0 ? spec.on_nodes[static_cast<std::size_t>(index)] : index;
    const auto [group, first] = GroupOf(spec.cluster, node);
    const int end = first + group->gpus_per_node;
    const auto is_here = [first = first, end](base::DeviceId gpu) {
      return gpu.value() >= first && gpu.value() < end;
    };
    const bool takes = devices.empty() ? ranks < num_ranks : std::ranges::any_of(devices, is_here);
    if (takes) own.push_back(node);
    ranks += static_cast<std::size_t>(group->gpus_per_node);
  }
  return own;
}

}  // namespace

std::vector<const topology::NodeGroup*> GroupsOf(const ScenarioSpec& spec) {
  std::vector<const topology::NodeGroup*> groups;
  for (const topology::NodeGroup& group : spec.cluster.node_groups) {
    const bool is_used = std::ranges::any_of(
        spec.on_nodes, [&](int node) { return GroupOf(spec.cluster, node).first == &group; });
    if (spec.on_nodes.empty() || is_used) groups.push_back(&group);
  }
  return groups;
}

int HighestNode(const ScenarioSpec& spec) {
  int highest = -1;
  for (const int node : spec.on_nodes) highest = std::max(highest, node);
  for (const OtherJobSpec& job : spec.other_jobs)
    for (const int node : job.nodes) highest = std::max(highest, node);
  return highest;
}

bool CheckOnNodes(Resolution& resolution) {
  const ScenarioSpec& spec = resolution.spec;
  if (spec.on_nodes.empty()) return resolution.is_sound("on_nodes");
  if (spec.cluster.ranks_share != topology::RanksShare::kNothing) {
    resolution.Complain("on_nodes", "all ranks of this cluster share one device", "leave it out");
    return false;
  }
  if (!spec.cluster.rank_devices.empty()) {
    resolution.Complain("on_nodes", "the cluster's rank_devices say where ranks are already",
                        "leave one of the two out");
    return false;
  }
  return CheckExist(resolution, "on_nodes", spec.on_nodes);
}

std::vector<base::DeviceId> GpusOn(const topology::ClusterSpec& cluster,
                                   const std::vector<int>& nodes) {
  std::vector<base::DeviceId> gpus;
  for (const int node : nodes) {
    const auto [group, first] = GroupOf(cluster, node);
    for (int gpu = 0; gpu < group->gpus_per_node; ++gpu) gpus.emplace_back(first + gpu);
  }
  return gpus;
}

void CheckOtherJobs(Resolution& resolution) {
  const ScenarioSpec& spec = resolution.spec;
  if (spec.other_jobs.empty()) return;
  constexpr std::size_t kMaxOtherJobs = 64;
  if (resolution.is_other_job) {
    resolution.Complain("other_jobs", "a job beside another has no other jobs of its own",
                        "name all of them in the scenario that is simulated");
    return;
  }
  if (spec.cluster.ranks_share != topology::RanksShare::kNothing) {
    resolution.Complain("other_jobs", "all ranks of this cluster share one device",
                        "only jobs on nodes of their own can be beside each other");
    return;
  }
  if (spec.other_jobs.size() > kMaxOtherJobs) {
    resolution.Complain("other_jobs", fmt::format("there are {}", spec.other_jobs.size()),
                        fmt::format("allowed: up to {}", kMaxOtherJobs));
    return;
  }
  std::map<int, std::string> taken;
  for (const int node : OwnNodes(spec)) taken.emplace(node, "this job");
  for (std::size_t index = 0; index < spec.other_jobs.size(); ++index) {
    const std::string path = fmt::format("other_jobs.{}.nodes", index);
    const std::vector<int>& nodes = spec.other_jobs[index].nodes;
    if (nodes.empty() || !CheckExist(resolution, path, nodes)) continue;
    for (const int node : nodes) {
      const auto [at, is_free] = taken.emplace(node, fmt::format("other_jobs.{}", index));
      if (is_free) continue;
      resolution.Complain(path, fmt::format("node {} is taken by {}", node, at->second),
                          "give each job nodes of its own: `nodes` here, `on_nodes` and "
                          "`num_gpus` of this job");
      break;
    }
  }
}

}  // namespace isthmus::scenarios::internal
