#include <utility>

#include "base/ids.h"
#include "scenarios/internal/fields.h"

namespace isthmus::scenarios::internal {
namespace {

using enum Presence;
using topology::FaultyPart;
using topology::LeafWiring;
using topology::RanksShare;
using topology::Sourced;

// A figure: its value alone, or `{value: …, source: …}`.
template <typename T, typename MakeScalar>
void Figure(Archive& archive, std::string_view key, Sourced<T>& figure, MakeScalar make,
            std::string_view doc) {
  Scalar alone = make(figure.value);
  alone.parse = [&figure, parse = std::move(alone.parse)](const std::string& text, bool is_quoted) {
    figure.source = "stated by the scenario";
    return parse(text, is_quoted);
  };
  archive.StructOr(
      key, std::move(alone), !figure.source.empty(),
      [&figure, make](Archive& inner) {
        inner.Value("value", make(figure.value), kRequired, "the figure");
        inner.Value("source", TextScalar(figure.source), kOptional,
                    "data sheet, measurement, or `assumed: …` with the reason");
      },
      doc);
}

template <typename IdType>
Scalar IdScalar(IdType& id) {
  return IntegerScalar([&id](std::int64_t value) { id = IdType(static_cast<std::int32_t>(value)); },
                       [&id] { return std::optional<std::int64_t>(id.value()); },
                       {0, kRankCount.max - 1});
}

void FabricFields(Archive& archive, topology::FabricSpec& fabric) {
  archive.Value("wiring",
                OneOf(fabric.wiring, {Means("rail_optimised", LeafWiring::kRailOptimised),
                                      Means("shared", LeafWiring::kShared)}),
                kOptional,
                "rail_optimised: a leaf switch per NIC index; shared: one for all NICs of a group");
  Figure(
      archive, "nodes_per_leaf_group", fabric.nodes_per_leaf_group,
      [](int& value) { return Integer(value, kRankCount); }, "nodes under the same leaf switches");
  Figure(
      archive, "oversubscription", fabric.oversubscription,
      [](double& value) { return Real(value, 1.0, 100.0); },
      "bandwidth of a leaf switch down to NICs over that up to spines");
  Figure(archive, "spine_port_bandwidth", fabric.spine_port_bandwidth, BandwidthScalar,
         "of one port between leaf and spine");
  Figure(archive, "hop_latency", fabric.hop_latency, TimeScalar, "leaf to spine, switch included");
}

void FaultFields(Archive& archive, topology::LinkFault& fault) {
  archive.Value(
      "part",
      OneOf(fault.part, {Means("nvlink", FaultyPart::kNvlink), Means("pcie", FaultyPart::kPcie),
                         Means("nic", FaultyPart::kNic), Means("uplink", FaultyPart::kUplink)}),
      kRequired, "which kind of link");
  archive.Value("node", IdScalar(fault.node), kRequired, "the node it belongs to");
  archive.Value("index", Integer(fault.index, {0, kDegree.max}), kRequired,
                "of the GPU, NIC or leaf switch in the node");
  archive.Value("bandwidth_factor", Real(fault.bandwidth_factor, 0.0, 1.0), kRequired,
                "what is left of the bandwidth; 0: dead");
}

void SlowGpuFields(Archive& archive, topology::SlowGpu& gpu) {
  archive.Value("gpu", IdScalar(gpu.device), kRequired, "number of the GPU in the cluster");
  archive.Value("speed_factor", Real(gpu.speed_factor, 0.01, 1.0), kRequired,
                "0.9 takes 1/0.9 of the time");
}

template <typename T, void (*kFields)(Archive&, T&)>
Archive::Items ListOf(std::vector<T>& values) {
  Archive::Items items;
  items.names.resize(values.size());
  items.add = [&values](const std::string&) { values.emplace_back(); };
  items.visit = [&values](std::size_t index, Archive& inner) { kFields(inner, values[index]); };
  items.visit_default = [](Archive& inner) {
    T fresh;
    kFields(inner, fresh);
  };
  return items;
}

}  // namespace

void Fields(Archive& archive, topology::NodeGroup& group) {
  archive.Value("gpu", TextScalar(group.gpu), kRequired, "name of the GPU's profile");
  archive.Value("num_nodes", Integer(group.num_nodes, kRankCount), kOptional,
                "nodes of this group; with one group, `nodes` of the scenario says it too");
  archive.Value("gpus_per_node", Integer(group.gpus_per_node, {1, 1'024}), kOptional,
                "GPUs of a node");
  archive.Value("nics_per_node", Integer(group.nics_per_node, {0, 1'024}), kOptional,
                "network cards of a node; divides gpus_per_node; 0 only in a cluster of one node");
  archive.Value("source", TextScalar(group.source), kOptional, "of the counts");
  Figure(archive, "nvlink_bandwidth", group.nvlink_bandwidth, BandwidthScalar,
         "of a GPU into NVSwitch");
  Figure(archive, "nvlink_latency", group.nvlink_latency, TimeScalar, "GPU to NVSwitch");
  Figure(archive, "nic_bandwidth", group.nic_bandwidth, BandwidthScalar, "of one NIC");
  Figure(archive, "nic_latency", group.nic_latency, TimeScalar,
         "PCIe switch to leaf switch, NIC included");
  Figure(archive, "pcie_bandwidth", group.pcie_bandwidth, BandwidthScalar,
         "of a GPU, also of a PCIe switch to the host");
  Figure(archive, "pcie_latency", group.pcie_latency, TimeScalar, "of one PCIe link");
}

void Fields(Archive& archive, topology::ClusterSpec& cluster) {
  archive.Value("name", TextScalar(cluster.name), kOptional, "name in reports");
  archive.Named("node_groups", ItemsOf(cluster.node_groups, &topology::NodeGroup::name),
                "node group", "runs of equal nodes by name; GPUs are numbered in this order");
  archive.Value("ranks_share",
                OneOf(cluster.ranks_share,
                      {Means("nothing", RanksShare::kNothing), Means("cores", RanksShare::kCores),
                       Means("gpu", RanksShare::kGpu)}),
                kOptional,
                "nothing: a GPU per rank; cores: ranks are processes on a machine without GPUs; "
                "gpu: ranks are processes on the cluster's one GPU");
  archive.Value("cores", Integer(cluster.cores, {0, 1'024}), kOptional,
                "of ranks_share: cores; 0: as many as the profile was measured on");
  archive.Struct(
      "fabric", [&cluster](Archive& inner) { FabricFields(inner, cluster.fabric); }, nullptr,
      "the network between nodes");
  archive.List("link_faults", ListOf<topology::LinkFault, FaultFields>(cluster.link_faults),
               "links with less than their bandwidth");
  archive.List("slow_gpus", ListOf<topology::SlowGpu, SlowGpuFields>(cluster.slow_gpus),
               "GPUs that compute slower than their profile says");
  archive.Values(
      "rank_devices", cluster.rank_devices.size(),
      [&cluster](std::size_t size) { cluster.rank_devices.resize(size, base::DeviceId(0)); },
      [&cluster](std::size_t index) { return IdScalar(cluster.rank_devices[index]); },
      "the GPU of each rank; absent: rank r is on GPU r");
}

}  // namespace isthmus::scenarios::internal
