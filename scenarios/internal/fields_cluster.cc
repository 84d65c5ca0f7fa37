#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "scenarios/internal/fields.h"

namespace isthmus::scenarios::internal {
namespace {

using enum Presence;
using topology::LeafWiring;
using topology::RanksShare;
using topology::Sourced;
using topology::TimeVariation;

// A figure: its value alone, or `{value: …, source: …}`. One that is `fallback` is not printed.
template <typename T, typename MakeScalar>
void Figure(Archive& archive, std::string_view key, Sourced<T>& figure, MakeScalar make,
            std::string_view doc, const Sourced<T>& fallback = {}) {
  const bool is_default = figure == fallback;
  Scalar alone = make(figure.value);
  alone.parse = [&figure, parse = std::move(alone.parse)](const std::string& text, bool is_quoted) {
    figure.source = "stated by the scenario";
    return parse(text, is_quoted);
  };
  if (is_default) {
    // Without a source the fallback is no value.
    if (!fallback.source.empty()) alone.print_default = std::move(alone.print);
    alone.print = [] { return std::optional<std::string>(); };
  }
  archive.StructOr(
      key, std::move(alone), !is_default && !figure.source.empty(),
      [&figure, make](Archive& inner) {
        inner.Value("value", make(figure.value), kRequired, "the figure");
        inner.Value("source", TextScalar(figure.source), kOptional,
                    "data sheet, measurement, or `assumed: …` with the reason");
      },
      doc);
}

// A count that is printed only where it is not `fallback`.
Scalar CountUnless(int fallback, int& value, IntegerRange range) {
  Scalar scalar = Integer(value, range);
  scalar.print_default = std::move(scalar.print);
  scalar.print = [fallback, &value, print = scalar.print_default] {
    return value == fallback ? std::nullopt : print();
  };
  return scalar;
}

// A struct that may be absent.
template <typename T, typename Body>
void Optional(Archive& archive, std::string_view key, std::optional<T>& value, Body body,
              std::string_view doc) {
  bool is_set = value.has_value();
  T fresh = value.value_or(T{});
  archive.Struct(
      key, [&fresh, body](Archive& inner) { body(inner, fresh); }, &is_set, doc);
  value = is_set ? std::optional<T>(std::move(fresh)) : std::nullopt;
}

template <typename IdType>
Scalar IdScalar(IdType& id) {
  return IntegerScalar([&id](std::int64_t value) { id = IdType(static_cast<std::int32_t>(value)); },
                       [&id] { return std::optional<std::int64_t>(id.value()); },
                       {0, kRankCount.max - 1});
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

Scalar CountScalar(int& value) { return Integer(value, kRankCount); }
Scalar OversubscriptionScalar(double& value) { return Real(value, 1.0, 100.0); }

void CoreFields(Archive& archive, topology::CoreTier& core) {
  Figure(archive, "leaf_groups_per_pod", core.leaf_groups_per_pod, CountScalar,
         "leaf groups under the same spine switches");
  const topology::CoreTier fresh;
  Figure(archive, "num_cores", core.num_cores, CountScalar,
         "core switches, as many over each spine switch of a pod; absent: 1 if num_spines is 1",
         fresh.num_cores);
  Figure(archive, "oversubscription", core.oversubscription, OversubscriptionScalar,
         "bandwidth of a pod's spine switches down to leaves over that up to cores");
  Figure(archive, "port_bandwidth", core.port_bandwidth, BandwidthScalar,
         "of one port between spine and core");
  Figure(archive, "hop_latency", core.hop_latency, TimeScalar, "spine to core, switch included");
}

void CableFields(Archive& archive, topology::CableSpec& cable) {
  archive.Value("from", TextScalar(cable.from), kRequired,
                "a switch, or NICs by node and index: `nic 0.3`, `nic 0-7.3`, `nic *.*`");
  archive.Value("to", TextScalar(cable.to), kRequired, "the same; at least one end is a switch");
  archive.Value("count", CountUnless(1, cable.count, kRankCount), kOptional,
                "side by side between the same ends; absent: 1");
  Figure(archive, "bandwidth", cable.bandwidth, BandwidthScalar,
         "of one; absent: the NIC's, or spine_port_bandwidth");
  Figure(archive, "latency", cable.latency, TimeScalar,
         "absent: the NIC's, or hop_latency; paths of equal latency and length are shared out");
}

void CustomFields(Archive& archive, topology::CustomFabric& custom) {
  archive.Values(
      "switches", custom.switches.size(),
      [&custom](std::size_t size) { custom.switches.resize(size); },
      [&custom](std::size_t index) { return TextScalar(custom.switches[index]); },
      "names of the switches");
  archive.List("cables", ListOf<topology::CableSpec, CableFields>(custom.cables),
               "what joins NICs and switches");
}

Scalar SeedScalar(std::uint64_t& seed) {
  return IntegerScalar([&seed](std::int64_t value) { seed = static_cast<std::uint64_t>(value); },
                       [&seed] { return std::optional(static_cast<std::int64_t>(seed)); },
                       {0, std::numeric_limits<std::int64_t>::max()});
}

void EcmpFields(Archive& archive, topology::Ecmp& ecmp) {
  archive.Value("seed", SeedScalar(ecmp.seed), kOptional, "another seed, other pairs that collide");
}

void FabricFields(Archive& archive, topology::FabricSpec& fabric) {
  archive.Value("wiring",
                OneOf(fabric.wiring, {Means("rail_optimised", LeafWiring::kRailOptimised),
                                      Means("shared", LeafWiring::kShared)}),
                kOptional,
                "rail_optimised: a leaf switch per NIC index; shared: one for all NICs of a group");
  Figure(archive, "nodes_per_leaf_group", fabric.nodes_per_leaf_group, CountScalar,
         "nodes under the same leaf switches");
  Figure(archive, "oversubscription", fabric.oversubscription, OversubscriptionScalar,
         "bandwidth of a leaf switch down to NICs over that up to spines");
  Figure(archive, "spine_port_bandwidth", fabric.spine_port_bandwidth, BandwidthScalar,
         "of one port between leaf and spine");
  Figure(archive, "hop_latency", fabric.hop_latency, TimeScalar, "leaf to spine, switch included");
  const topology::FabricSpec fresh;
  Figure(archive, "num_spines", fabric.num_spines, CountScalar,
         "spine switches, of a pod if there are cores; each is joined to every leaf; absent: 1",
         fresh.num_spines);
  Optional(archive, "core", fabric.core, CoreFields,
           "a third tier: core switches over pods of leaf groups");
  Optional(archive, "ecmp", fabric.ecmp, EcmpFields,
           "each pair of NICs keeps to one spine and core switch, drawn by hash; absent: traffic "
           "spreads evenly, as if the switches of a layer were one");
  Optional(archive, "custom", fabric.custom, CustomFields,
           "any fabric, switch by switch and cable by cable, instead of leaves, spines and cores");
}

void FaultFields(Archive& archive, topology::LinkFault& fault) {
  std::vector<Word> parts;
  for (const auto& [name, part] : topology::kFaultyParts) parts.push_back(Means(name, part));
  archive.Value(
      "part", OneOf(fault.part, std::move(parts)), kRequired,
      "which kind of link: of a GPU, NIC, leaf switch (uplink) or spine switch (core_link), all "
      "links of a spine or core switch; of a custom fabric a cable of its list, or all of a "
      "switch");
  archive.Value(
      "node", IdScalar(fault.node), kRequired,
      "the node it belongs to, by its leaf group or pod too; of a core or custom switch any");
  archive.Value("index", Integer(fault.index, {0, kDegree.max}), kRequired,
                "of the GPU or NIC in the node, leaf switch in the leaf group, spine in the pod, "
                "else in the fabric");
  archive.Value("bandwidth_factor", Real(fault.bandwidth_factor, 0.0, 1.0), kRequired,
                "what is left of the bandwidth; 0: dead");
  archive.Value("to", Integer(fault.to, {0, kDegree.max}), kOptional,
                "of an uplink only that to this spine, of a core_link to this core; absent: all");
}

void SlowGpuFields(Archive& archive, topology::SlowGpu& gpu) {
  archive.Value("gpu", IdScalar(gpu.device), kRequired, "number of the GPU in the cluster");
  archive.Value("speed_factor", Real(gpu.speed_factor, 0.01, 1.0), kRequired,
                "0.9 takes 1/0.9 of the time");
}

void StallFields(Archive& archive, TimeVariation::Stall& stall) {
  archive.Value("probability", Real(stall.probability, 0.0, 1.0), kRequired,
                "of one op; 0.001 is one op in a thousand");
  archive.Value("time", TimeScalar(stall.time), kRequired, "by which that op is longer, to 1 h");
}

void VariationFields(Archive& archive, TimeVariation& variation) {
  using enum TimeVariation::Distribution;
  archive.Value("distribution",
                OneOf(variation.distribution,
                      {Means("lognormal", kLognormal), Means("exponential", kExponential)}),
                kOptional,
                "of the factor on an op's time, whose mean is 1; exponential: never under 1 - "
                "deviation");
  archive.Value("deviation", Real(variation.deviation, 0.0, 1.0), kOptional,
                "standard deviation of the factor; 0.03 is 3 %");
  Optional(archive, "stall", variation.stall, StallFields, "what rarely holds an op up");
}

void JitterFields(Archive& archive, topology::Jitter& jitter) {
  archive.Value("seed", SeedScalar(jitter.seed), kOptional, "another seed, other factors");
  archive.Struct(
      "compute", [&jitter](Archive& inner) { VariationFields(inner, jitter.compute); }, nullptr,
      "of blocks of layers and the optimizer");
  archive.Struct(
      "communication", [&jitter](Archive& inner) { VariationFields(inner, jitter.communication); },
      nullptr, "of collectives between blocks, messages and copies");
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
  archive.Value("nodes_per_nvlink_domain",
                CountUnless(1, group.nodes_per_nvlink_domain, kRankCount), kOptional,
                "nodes whose GPUs one NVSwitch fabric joins, 18 of GB200 NVL72; absent: 1");
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
  Optional(archive, "jitter", cluster.jitter, JitterFields,
           "random variation of what every rank's ops take, by rank and op (models/jitter.md); "
           "absent: none");
  archive.Values(
      "rank_devices", cluster.rank_devices.size(),
      [&cluster](std::size_t size) { cluster.rank_devices.resize(size, base::DeviceId(0)); },
      [&cluster](std::size_t index) { return IdScalar(cluster.rank_devices[index]); },
      "the GPU of each rank; absent: rank r is on GPU r");
}

}  // namespace isthmus::scenarios::internal
