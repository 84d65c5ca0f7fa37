#include "topology/internal/numbering.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <span>
#include <variant>

#include "base/check.h"
#include "topology/internal/custom_wiring.h"

namespace isthmus::topology::internal {
namespace {

Block MakeBlock(const ClusterSpec& spec, int group_index) {
  const NodeGroup& group = spec.node_groups[static_cast<std::size_t>(group_index)];
  Block block;
  block.group_index = group_index;
  block.num_nodes = group.num_nodes;
  block.gpus_per_node = group.gpus_per_node;
  block.has_nics = group.nics_per_node > 0;
  block.switches_per_node = block.has_nics ? group.nics_per_node : group.gpus_per_node;
  block.gpus_per_switch = group.gpus_per_node / block.switches_per_node;
  block.is_rail_optimised = spec.fabric.wiring == LeafWiring::kRailOptimised;
  const bool has_leaves = block.has_nics && !spec.fabric.custom;
  block.leaves_per_leaf_group =
      has_leaves ? (block.is_rail_optimised ? group.nics_per_node : 1) : 0;
  block.nodes_per_domain = group.nodes_per_nvlink_domain;
  block.has_nvlink = group.gpus_per_node > 1 || group.nodes_per_nvlink_domain > 1;
  // Without leaves a node group is a leaf group of its own.
  block.nodes_per_leaf_group =
      has_leaves ? spec.fabric.nodes_per_leaf_group.value : group.num_nodes;
  return block;
}

int CeilDivide(int count, int size) { return (count + size - 1) / size; }

// The switch of an end that names one.
std::optional<int> SwitchOf(const ClusterSpec& spec, const std::string& end) {
  const CableEndSpec read = ReadCableEnd(spec, end);
  const int* number = std::get_if<int>(&read);
  return number != nullptr ? std::optional(*number) : std::nullopt;
}

// first[k + 1] - first[k] is the number of things of kind k.
void FillFirst(std::span<const int> counts, std::span<int> first) {
  std::partial_sum(counts.begin(), counts.end(), first.begin() + 1);
}

}  // namespace

Numbering::Numbering(const ClusterSpec& spec)
    : has_cores_(spec.fabric.core && !spec.fabric.custom),
      has_ecmp_(spec.fabric.ecmp && !spec.fabric.custom),
      is_custom_(spec.fabric.custom.has_value()) {
  int gpus = 0;
  int switches = 0;
  int nics = 0;
  for (int index = 0; index < static_cast<int>(spec.node_groups.size()); ++index) {
    const int nodes = spec.node_groups[static_cast<std::size_t>(index)].num_nodes;
    Block block = MakeBlock(spec, index);
    block.first_node = num_nodes_;
    block.first_domain = num_domains_;
    block.first_gpu = gpus;
    block.first_switch = switches;
    block.first_leaf = num_leaves_;
    block.first_leaf_group = num_leaf_groups_;
    blocks_.push_back(block);
    const int leaf_groups = CeilDivide(nodes, block.nodes_per_leaf_group);
    num_nodes_ += nodes;
    num_domains_ += CeilDivide(nodes, block.nodes_per_domain);
    num_leaf_groups_ += leaf_groups;
    gpus += nodes * block.gpus_per_node;
    switches += nodes * block.switches_per_node;
    nics += block.has_nics ? nodes * block.switches_per_node : 0;
    num_leaves_ += leaf_groups * block.leaves_per_leaf_group;
  }
  leaf_groups_per_pod_ =
      has_cores_ ? spec.fabric.core->leaf_groups_per_pod.value : num_leaf_groups_;
  num_pods_ = CeilDivide(num_leaf_groups_, leaf_groups_per_pod_);
  if (has_ecmp_) spines_per_pod_ = spec.fabric.num_spines.value;
  if (has_ecmp_ && has_cores_)
    cores_per_spine_ = spec.fabric.core->num_cores.value / spines_per_pod_;
  const int spines = num_leaves_ > 0 ? num_pods_ * spines_per_pod_ : 0;
  const int cores = num_leaves_ > 0 && has_cores_ ? spines_per_pod_ * cores_per_spine_ : 0;
  const int num_switches = is_custom_ ? static_cast<int>(spec.fabric.custom->switches.size()) : 0;
  const int devices[] = {gpus,        num_domains_, switches, nics,        num_nodes_,
                         num_leaves_, spines,       cores,    num_switches};
  FillFirst(devices, first_device_);
  links_of_switches_.resize(static_cast<std::size_t>(num_switches));
  links_of_nics_.resize(static_cast<std::size_t>(is_custom_ ? nics : 0));
  if (is_custom_) ReadCustomCables(spec);
  const int cables[] = {gpus,
                        gpus,
                        switches,
                        nics,
                        is_custom_ ? 0 : nics,
                        num_leaves_ * spines_per_pod_,
                        cores > 0 ? spines * cores_per_spine_ : 0,
                        static_cast<int>(custom_cables_.size())};
  FillFirst(cables, first_cable_);
  for (int number = 0; number < static_cast<int>(custom_cables_.size()); ++number) {
    const CustomCable& cable = CustomCableAt(number);
    auto& links = cable.is_of_nic ? links_of_nics_ : links_of_switches_;
    links[static_cast<std::size_t>(cable.from)].push_back(UpLink(kCustom, number));
    links_of_switches_[static_cast<std::size_t>(cable.to)].push_back(DownLink(kCustom, number));
  }
}

void Numbering::ReadCustomCables(const ClusterSpec& spec) {
  for (int index = 0; index < static_cast<int>(spec.fabric.custom->cables.size()); ++index) {
    AddCustomCables(spec, index);
  }
}

std::vector<int> Numbering::NicsOf(const ClusterSpec& spec, const std::string& end) const {
  const NicEnds ends = std::get<NicEnds>(ReadCableEnd(spec, end));
  std::vector<int> nics;
  for (int node = ends.nodes.first; node <= ends.nodes.last; ++node) {
    const Block& block = BlockOfNode(node);
    const int first = block.first_switch + (node - block.first_node) * block.switches_per_node;
    const int last = ends.has_all_indices ? block.switches_per_node - 1 : ends.indices.last;
    for (int index = ends.indices.first; index <= last; ++index) nics.push_back(first + index);
  }
  return nics;
}

void Numbering::AddCustomCables(const ClusterSpec& spec, int spec_index) {
  const CableSpec& cable = spec.fabric.custom->cables[static_cast<std::size_t>(spec_index)];
  const std::optional<int> from = SwitchOf(spec, cable.from);
  const std::optional<int> to = SwitchOf(spec, cable.to);
  if (from && to) {
    custom_cables_.push_back({false, *from, *to, spec_index});
    return;
  }
  for (const int nic : NicsOf(spec, from ? cable.to : cable.from)) {
    custom_cables_.push_back({true, nic, from ? *from : *to, spec_index});
  }
}

int Numbering::CountOf(DeviceKind kind) const {
  const auto index = static_cast<std::size_t>(kind);
  return first_device_[index + 1] - first_device_[index];
}

base::DeviceId Numbering::DeviceOf(DeviceKind kind, int number) const {
  return base::DeviceId{first_device_[static_cast<std::size_t>(kind)] + number};
}

DeviceKind Numbering::KindOf(base::DeviceId device) const {
  ISTHMUS_CHECK(device.value() >= 0 && device.value() < num_devices(), "no device {}",
                device.value());
  const auto next = std::upper_bound(first_device_.begin(), first_device_.end(), device.value());
  return static_cast<DeviceKind>(next - first_device_.begin() - 1);
}

int Numbering::NumberOf(base::DeviceId device) const {
  return device.value() - first_device_[static_cast<std::size_t>(KindOf(device))];
}

base::LinkId Numbering::UpLink(Cable cable, int number) const {
  return base::LinkId{2 * (first_cable_[static_cast<std::size_t>(cable)] + number)};
}

base::LinkId Numbering::DownLink(Cable cable, int number) const {
  return base::LinkId{UpLink(cable, number).value() + 1};
}

CableEnd Numbering::CableOf(base::LinkId link) const {
  ISTHMUS_CHECK(link.value() >= 0 && link.value() < num_links(), "no link {}", link.value());
  const int cable = link.value() / 2;
  const auto next = std::upper_bound(first_cable_.begin(), first_cable_.end(), cable);
  const auto kind = next - first_cable_.begin() - 1;
  return {.cable = static_cast<Cable>(kind),
          .number = cable - first_cable_[static_cast<std::size_t>(kind)],
          .is_up = LeadsUp(link)};
}

GpuPlace Numbering::PlaceOf(int gpu) const {
  ISTHMUS_CHECK(gpu >= 0 && gpu < num_gpus(), "device {} is not a GPU", gpu);
  const Block& block = Find(&Block::first_gpu, gpu);
  const int node_in_block = (gpu - block.first_gpu) / block.gpus_per_node;
  GpuPlace place;
  place.block = &block;
  place.node = block.first_node + node_in_block;
  place.domain = block.DomainOf(place.node);
  place.local = (gpu - block.first_gpu) % block.gpus_per_node;
  place.pcie_switch =
      block.first_switch + node_in_block * block.switches_per_node + place.nic_index();
  place.leaf_group = block.first_leaf_group + node_in_block / block.nodes_per_leaf_group;
  return place;
}

int Numbering::NodeOfSwitch(int pcie_switch) const {
  const Block& block = BlockOfSwitch(pcie_switch);
  return block.first_node + (pcie_switch - block.first_switch) / block.switches_per_node;
}

int Numbering::LeafOfNic(int nic) const {
  const Block& block = BlockOfSwitch(nic);
  return block.LeafOf(NodeOfSwitch(nic), (nic - block.first_switch) % block.switches_per_node);
}

int Numbering::LeafGroupOfNode(int node) const {
  const Block& block = BlockOfNode(node);
  return block.first_leaf_group + (node - block.first_node) / block.nodes_per_leaf_group;
}

int Numbering::PodOfLeaf(int leaf) const {
  const Block& block = BlockOfLeaf(leaf);
  return PodOfLeafGroup(block.first_leaf_group +
                        (leaf - block.first_leaf) / block.leaves_per_leaf_group);
}

int Numbering::FirstLeafOfPod(int pod) const {
  const int leaf_group = pod * leaf_groups_per_pod_;
  if (leaf_group >= num_leaf_groups_) return num_leaves_;
  const Block& block = BlockOfLeafGroup(leaf_group);
  return block.first_leaf + (leaf_group - block.first_leaf_group) * block.leaves_per_leaf_group;
}

// The last block whose first number is not greater. Blocks are few: clusters have a handful of
// node groups.
const Block& Numbering::Find(int Block::*first, int number) const {
  std::size_t index = blocks_.size() - 1;
  while (blocks_[index].*first > number) --index;
  return blocks_[index];
}

}  // namespace isthmus::topology::internal
