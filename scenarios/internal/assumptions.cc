#include "scenarios/internal/assumptions.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "base/units.h"
#include "topology/cluster.h"
#include "topology/describe.h"
#include "topology/oversubscription.h"

namespace isthmus::scenarios::internal {
namespace {

void AddIfAssumed(const std::string& source, const std::string& what,
                  std::vector<std::string>& names) {
  if (source.starts_with("assumed")) names.push_back(what);
}

// "cluster h100-dgx: nic_latency, hop_latency are assumed".
std::string ClusterAssumption(const topology::ClusterSpec& cluster) {
  std::vector<std::string> names;
  for (const topology::NodeGroup& group : cluster.node_groups) {
    const bool is_single = cluster.node_groups.size() == 1;
    const std::string prefix = is_single ? "" : group.name + ".";
    AddIfAssumed(group.nvlink_bandwidth.source, prefix + "nvlink_bandwidth", names);
    AddIfAssumed(group.nvlink_latency.source, prefix + "nvlink_latency", names);
    AddIfAssumed(group.nic_bandwidth.source, prefix + "nic_bandwidth", names);
    AddIfAssumed(group.nic_latency.source, prefix + "nic_latency", names);
    AddIfAssumed(group.pcie_bandwidth.source, prefix + "pcie_bandwidth", names);
    AddIfAssumed(group.pcie_latency.source, prefix + "pcie_latency", names);
  }
  AddIfAssumed(cluster.fabric.nodes_per_leaf_group.source, "nodes_per_leaf_group", names);
  AddIfAssumed(cluster.fabric.oversubscription.source, "oversubscription", names);
  AddIfAssumed(cluster.fabric.spine_port_bandwidth.source, "spine_port_bandwidth", names);
  AddIfAssumed(cluster.fabric.hop_latency.source, "hop_latency", names);
  AddIfAssumed(cluster.fabric.num_spines.source, "num_spines", names);
  if (const auto& core = cluster.fabric.core) {
    AddIfAssumed(core->leaf_groups_per_pod.source, "core.leaf_groups_per_pod", names);
    AddIfAssumed(core->num_cores.source, "core.num_cores", names);
    AddIfAssumed(core->oversubscription.source, "core.oversubscription", names);
    AddIfAssumed(core->port_bandwidth.source, "core.port_bandwidth", names);
    AddIfAssumed(core->hop_latency.source, "core.hop_latency", names);
  }
  if (names.empty()) return {};
  return fmt::format("cluster {}: assumed {}", cluster.name, fmt::join(names, ", "));
}

// Where whole ports make another fabric than was asked for.
void AddWholePorts(const topology::ClusterSpec& spec, std::vector<std::string>& assumptions) {
  // Without layers there is nothing to ask a cluster for, which takes long to build cable by cable.
  if (spec.ranks_share != topology::RanksShare::kNothing || spec.fabric.custom) return;
  const topology::Cluster cluster(spec);
  const auto add = [&](std::string_view layer,
                       const std::vector<topology::SwitchBandwidth>& switches) {
    constexpr double kRounding = 0.05;
    if (std::ranges::all_of(
            switches, [](const auto& layer_switch) { return layer_switch.IsAsAsked(kRounding); })) {
      return;
    }
    assumptions.push_back(fmt::format("cluster {}: oversubscription from {} {}", spec.name, layer,
                                      topology::DescribeOversubscription(switches)));
  };
  add("leaf to spine", topology::LeafBandwidths(cluster));
  add("spine to core", topology::SpineBandwidths(cluster));
}

}  // namespace

std::vector<std::string> AssumptionsOf(const ScenarioSpec& spec) {
  std::vector<std::string> assumptions = spec.assumptions;
  for (const ModuleSpec& module : spec.modules) {
    if (module.model.mark != ModelMark::kAssumed) continue;
    assumptions.push_back(
        fmt::format("model {}: dimensions assumed: {}", module.model.name,
                    module.model.source.empty() ? "no reason given" : module.model.source));
  }
  std::string cluster = ClusterAssumption(spec.cluster);
  if (!cluster.empty()) assumptions.push_back(std::move(cluster));
  AddWholePorts(spec.cluster, assumptions);
  if (spec.cluster.jitter) {
    assumptions.push_back(
        fmt::format("cluster {}: jitter ({}), one draw of many; every rank is simulated by itself; "
                    "the profile's straggler wait is kept beside it",
                    spec.cluster.name, topology::DescribeJitter(*spec.cluster.jitter)));
  }
  return assumptions;
}

std::string AssumptionOf(const OtherJob& job) {
  const bool is_at_once = job.start_after == base::Seconds(0);
  return fmt::format(
      "other job {}: on nodes {}, {}, again and again; a run begins when the last rank of the one "
      "before it is done",
      job.name, job.nodes,
      is_at_once ? "from the start" : "after " + base::FormatSeconds(job.start_after));
}

}  // namespace isthmus::scenarios::internal
