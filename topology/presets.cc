#include "topology/presets.h"

#include <string>

#include "base/unit_literals.h"

namespace isthmus::topology {

using namespace base::literals;

namespace {

// Of the right order only. Routes need no more: they depend on which way has the larger sum.
void AssumeLatencies(NodeGroup& group, FabricSpec& fabric) {
  group.nvlink_latency = {250_ns, "assumed: half of a GPU-to-GPU path through NVSwitch"};
  group.pcie_latency = {300_ns, "assumed: one PCIe hop"};
  group.nic_latency = {800_ns, "assumed: NIC, cable and leaf switch, about 3 us GPU to GPU"};
  fabric.hop_latency = {300_ns, "assumed: cable and spine switch"};
}

ClusterSpec Dgx(std::string name, int num_nodes, NodeGroup group, FabricSpec fabric) {
  group.name = "dgx";
  group.num_nodes = num_nodes;
  group.gpus_per_node = 8;
  group.nics_per_node = 8;
  AssumeLatencies(group, fabric);
  fabric.wiring = LeafWiring::kRailOptimised;
  fabric.oversubscription = {1, "assumed: non-blocking, as the DGX SuperPOD reference"};
  ClusterSpec spec;
  spec.name = std::move(name);
  spec.node_groups = {std::move(group)};
  spec.fabric = std::move(fabric);
  return spec;
}

FabricSpec NdrFabric() {
  FabricSpec fabric;
  fabric.nodes_per_leaf_group = {
      32, "assumed: NVIDIA DGX SuperPOD H100 reference RA-11333-001, scalable unit"};
  fabric.spine_port_bandwidth = {400_Gbps, "NVIDIA QM9700 data sheet: NDR port"};
  return fabric;
}

// DGX H200 differs from DGX H100 in its GPUs only.
NodeGroup HopperNode(std::string gpu, const std::string& system, const std::string& chip) {
  NodeGroup group;
  group.gpu = std::move(gpu);
  group.source = "NVIDIA " + system + " data sheet";
  group.nvlink_bandwidth = {450_GBps, "NVIDIA " + chip + " data sheet: 900 GB/s both directions"};
  group.nic_bandwidth = {400_Gbps, "NVIDIA " + system + " data sheet: ConnectX-7 at 400 Gb/s"};
  group.pcie_bandwidth = {64_GBps,
                          "NVIDIA " + chip + " data sheet: Gen5 x16, 128 GB/s both directions"};
  return group;
}

}  // namespace

ClusterSpec H100Dgx(int num_nodes) {
  return Dgx("h100-dgx", num_nodes, HopperNode("h100-sxm", "DGX H100", "H100 SXM"), NdrFabric());
}

ClusterSpec H200Dgx(int num_nodes) {
  return Dgx("h200-dgx", num_nodes, HopperNode("h200-sxm", "DGX H200", "H200 SXM"), NdrFabric());
}

ClusterSpec A100Dgx(int num_nodes) {
  NodeGroup group;
  group.gpu = "a100-sxm";
  group.source = "NVIDIA DGX A100 data sheet";
  group.nvlink_bandwidth = {300_GBps, "NVIDIA A100 SXM data sheet: 600 GB/s both directions"};
  group.nic_bandwidth = {200_Gbps, "NVIDIA DGX A100 data sheet: ConnectX-6 at 200 Gb/s"};
  group.pcie_bandwidth = {32_GBps, "NVIDIA A100 SXM data sheet: Gen4 x16, 64 GB/s both directions"};
  FabricSpec fabric;
  fabric.nodes_per_leaf_group = {
      20, "assumed: NVIDIA DGX SuperPOD A100 reference RA-10333-001, scalable unit"};
  fabric.spine_port_bandwidth = {200_Gbps, "NVIDIA QM8700 data sheet: HDR port"};
  return Dgx("a100-dgx", num_nodes, std::move(group), std::move(fabric));
}

std::vector<std::string> PresetNames() { return {"h100-dgx", "h200-dgx", "a100-dgx"}; }

std::optional<ClusterSpec> FindPreset(std::string_view name, int num_nodes) {
  if (name == "h100-dgx") return H100Dgx(num_nodes);
  if (name == "h200-dgx") return H200Dgx(num_nodes);
  if (name == "a100-dgx") return A100Dgx(num_nodes);
  return std::nullopt;
}

}  // namespace isthmus::topology
