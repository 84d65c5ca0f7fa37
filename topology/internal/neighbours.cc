// What is joined to what: the arithmetic of devices and cables in Numbering.

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "topology/internal/numbering.h"

namespace isthmus::topology::internal {

Device Numbering::DeviceAt(base::DeviceId id) const {
  const int number = NumberOf(id);
  Device device{.id = id, .kind = KindOf(id)};
  int node = number;  // of a host
  switch (device.kind) {
    case DeviceKind::kGpu: {
      const GpuPlace place = PlaceOf(number);
      node = place.node;
      device.index = place.local;
      device.domain = place.domain;
      break;
    }
    case DeviceKind::kNvSwitch: {
      const Block& block = BlockOfDomain(number);
      device.domain = number;
      device.leaf_group = LeafGroupOfNode(block.first_node +
                                          (number - block.first_domain) * block.nodes_per_domain);
      return device;
    }
    case DeviceKind::kHost:
      break;
    case DeviceKind::kPcieSwitch:
    case DeviceKind::kNic: {
      const Block& block = BlockOfSwitch(number);
      node = NodeOfSwitch(number);
      device.index = (number - block.first_switch) % block.switches_per_node;
      break;
    }
    case DeviceKind::kLeaf: {
      const Block& block = BlockOfLeaf(number);
      const int leaf = number - block.first_leaf;
      device.index = leaf % block.leaves_per_leaf_group;
      device.leaf_group = block.first_leaf_group + leaf / block.leaves_per_leaf_group;
      return device;
    }
    case DeviceKind::kSpine:
      device.index = number % spines_per_pod_;
      if (has_cores_ || has_ecmp_) device.pod = number / spines_per_pod_;
      device.is_layer = !has_ecmp_;
      return device;
    case DeviceKind::kSwitch:
      device.index = number;
      return device;
    case DeviceKind::kCore:
      device.index = number;
      device.is_layer = !has_ecmp_;
      return device;
  }
  device.node = base::NodeId{node};
  device.leaf_group = LeafGroupOfNode(node);
  return device;
}

std::pair<base::DeviceId, base::DeviceId> Numbering::EndsOf(Cable cable, int number) const {
  const auto ends = [this, number](DeviceKind low, DeviceKind high, int high_number) {
    return std::pair(DeviceOf(low, number), DeviceOf(high, high_number));
  };
  switch (cable) {
    case kGpuNvlink:
      return ends(DeviceKind::kGpu, DeviceKind::kNvSwitch, PlaceOf(number).domain);
    case kGpuPcie:
      return ends(DeviceKind::kGpu, DeviceKind::kPcieSwitch, PlaceOf(number).pcie_switch);
    case kHostPcie:
      return ends(DeviceKind::kPcieSwitch, DeviceKind::kHost, NodeOfSwitch(number));
    case kNicPcie:
      return ends(DeviceKind::kPcieSwitch, DeviceKind::kNic, number);
    case kNicLeaf:
      return ends(DeviceKind::kNic, DeviceKind::kLeaf, LeafOfNic(number));
    case kLeafSpine: {
      const int leaf = number / spines_per_pod_;
      const int spine = PodOfLeaf(leaf) * spines_per_pod_ + number % spines_per_pod_;
      return {DeviceOf(DeviceKind::kLeaf, leaf), DeviceOf(DeviceKind::kSpine, spine)};
    }
    case kSpineCore: {
      const int spine = number / cores_per_spine_;
      const int core = spine % spines_per_pod_ * cores_per_spine_ + number % cores_per_spine_;
      return {DeviceOf(DeviceKind::kSpine, spine), DeviceOf(DeviceKind::kCore, core)};
    }
    case kCustom: {
      const CustomCable& wired = CustomCableAt(number);
      return {DeviceOf(wired.is_of_nic ? DeviceKind::kNic : DeviceKind::kSwitch, wired.from),
              DeviceOf(DeviceKind::kSwitch, wired.to)};
    }
    case kNumCables:
      break;
  }
  ISTHMUS_CHECK(false, "no such cable {}", static_cast<int>(cable));
}

std::vector<base::LinkId> Numbering::LinksDown(Cable cable, int first, int count,
                                               int stride) const {
  std::vector<base::LinkId> links;
  links.reserve(static_cast<std::size_t>(count) + 2);  // most callers add up to two
  for (int index = 0; index < count; ++index) {
    links.push_back(DownLink(cable, first + index * stride));
  }
  return links;
}

std::vector<base::LinkId> Numbering::LinksFrom(base::DeviceId id) const {
  const int number = NumberOf(id);
  switch (KindOf(id)) {
    case DeviceKind::kGpu:
      if (!PlaceOf(number).block->has_nvlink) return {UpLink(kGpuPcie, number)};
      return {UpLink(kGpuNvlink, number), UpLink(kGpuPcie, number)};
    case DeviceKind::kNvSwitch:
      return LinksFromDomain(number);
    case DeviceKind::kPcieSwitch: {
      const Block& block = BlockOfSwitch(number);
      const int first = block.first_gpu + (number - block.first_switch) * block.gpus_per_switch;
      std::vector<base::LinkId> links = LinksDown(kGpuPcie, first, block.gpus_per_switch);
      links.push_back(UpLink(kHostPcie, number));
      if (block.has_nics) links.push_back(UpLink(kNicPcie, number));
      return links;
    }
    case DeviceKind::kNic: {
      if (!is_custom_) return {DownLink(kNicPcie, number), UpLink(kNicLeaf, number)};
      std::vector<base::LinkId> links = {DownLink(kNicPcie, number)};
      const std::vector<base::LinkId>& into_fabric = CustomLinksOfNic(number);
      links.insert(links.end(), into_fabric.begin(), into_fabric.end());
      return links;
    }
    case DeviceKind::kHost: {
      const Block& block = BlockOfNode(number);
      const int first = block.first_switch + (number - block.first_node) * block.switches_per_node;
      return LinksDown(kHostPcie, first, block.switches_per_node);
    }
    case DeviceKind::kLeaf:
      return LinksFromLeaf(number);
    case DeviceKind::kSpine:
      return LinksFromSpine(number);
    case DeviceKind::kSwitch:
      return LinksOfSwitch(number);
    case DeviceKind::kCore: {
      const int plane = number / cores_per_spine_;
      return LinksDown(kSpineCore, CoreLinkOf(0, plane, number % cores_per_spine_), num_pods_,
                       spines_per_pod_ * cores_per_spine_);
    }
  }
  ISTHMUS_CHECK(false, "device {} is of no kind", id.value());
}

std::pair<int, int> Numbering::GpusOfDomain(int domain) const {
  const Block& block = BlockOfDomain(domain);
  const int first_node = (domain - block.first_domain) * block.nodes_per_domain;  // in its block
  const int num_nodes = std::min(block.nodes_per_domain, block.num_nodes - first_node);
  return {block.first_gpu + first_node * block.gpus_per_node, num_nodes * block.gpus_per_node};
}

base::DeviceId Numbering::NextInDomain(base::DeviceId gpu) const {
  const auto [first, count] = GpusOfDomain(PlaceOf(gpu.value()).domain);
  return base::DeviceId{first + (gpu.value() - first + 1) % count};
}

std::vector<base::LinkId> Numbering::LinksFromDomain(int domain) const {
  if (!BlockOfDomain(domain).has_nvlink) return {};
  const auto [first, count] = GpusOfDomain(domain);
  return LinksDown(kGpuNvlink, first, count);
}

std::vector<base::LinkId> Numbering::LinksFromSpine(int spine) const {
  const int pod = spine / spines_per_pod_;
  const int index = spine % spines_per_pod_;
  const int first_leaf = FirstLeafOfPod(pod);
  std::vector<base::LinkId> links =
      LinksDown(kLeafSpine, UplinkOf(first_leaf, index), FirstLeafOfPod(pod + 1) - first_leaf,
                spines_per_pod_);
  for (int core = 0; has_cores_ && core < cores_per_spine_; ++core) {
    links.push_back(UpLink(kSpineCore, CoreLinkOf(pod, index, core)));
  }
  return links;
}

std::vector<base::LinkId> Numbering::LinksFromLeaf(int leaf) const {
  const Block& block = BlockOfLeaf(leaf);
  const int group_in_block = (leaf - block.first_leaf) / block.leaves_per_leaf_group;
  const int first_node = group_in_block * block.nodes_per_leaf_group;  // in its block
  const int num_nodes = std::min(block.nodes_per_leaf_group, block.num_nodes - first_node);
  const int first_nic = block.first_switch + first_node * block.switches_per_node;
  const int rail = (leaf - block.first_leaf) % block.leaves_per_leaf_group;
  std::vector<base::LinkId> links =
      block.is_rail_optimised
          ? LinksDown(kNicLeaf, first_nic + rail, num_nodes, block.switches_per_node)
          : LinksDown(kNicLeaf, first_nic, num_nodes * block.switches_per_node);
  for (int spine = 0; spine < spines_per_pod_; ++spine) {
    links.push_back(UpLink(kLeafSpine, UplinkOf(leaf, spine)));
  }
  return links;
}

}  // namespace isthmus::topology::internal
