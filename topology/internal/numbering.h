#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "topology/cluster_spec.h"
#include "topology/route.h"

namespace isthmus::topology::internal {

/// What a node group adds up to: the numbers of its first node, GPU, … and its strides.
struct Block {
  int group_index = 0;
  int first_node = 0;
  int first_domain = 0;
  int first_gpu = 0;
  int first_switch = 0;  // PCIe switches; NICs have the same numbers
  int first_leaf = 0;
  int first_leaf_group = 0;
  int gpus_per_node = 0;
  int switches_per_node = 0;
  int gpus_per_switch = 0;
  int leaves_per_leaf_group = 0;
  int nodes_per_leaf_group = 0;
  int nodes_per_domain = 1;
  int num_nodes = 0;
  bool has_nics = false;
  bool has_nvlink = false;
  bool is_rail_optimised = false;

  int LeafOf(int node, int nic_index) const {
    return first_leaf + (node - first_node) / nodes_per_leaf_group * leaves_per_leaf_group +
           (is_rail_optimised ? nic_index : 0);
  }
  int GpuOf(int node, int local) const {
    return first_gpu + (node - first_node) * gpus_per_node + local;
  }
  int DomainOf(int node) const { return first_domain + (node - first_node) / nodes_per_domain; }
};

/// A GPU's surroundings; all but `local` are numbers over the whole cluster.
struct GpuPlace {
  const Block* block = nullptr;
  int node = 0;
  int domain = 0;
  int local = 0;
  int pcie_switch = 0;  // the number of its NIC too, if there are NICs
  int leaf_group = 0;

  int nic_index() const { return local / block->gpus_per_switch; }
};

/// Kinds of cables. Both directions of cable c are links: 2c leads away from the GPUs, 2c + 1 back.
enum Cable {
  kGpuNvlink,
  kGpuPcie,
  kHostPcie,
  kNicPcie,
  kNicLeaf,
  kLeafSpine,
  kSpineCore,
  kCustom,
  kNumCables
};

/// Whether a link leads away from the GPUs.
inline bool LeadsUp(base::LinkId link) { return link.value() % 2 == 0; }

/// A cable of a custom fabric: from a NIC or a switch to a switch.
struct CustomCable {
  bool is_of_nic = false;
  int from = 0;  // the number of the NIC or switch
  int to = 0;    // of the switch
  int spec_index = 0;
};

/// A link by its cable.
struct CableEnd {
  Cable cable = kGpuNvlink;
  int number = 0;  // among the cables of this kind
  bool is_up = true;
};

/// How devices and links are numbered: kinds one after another, each kind node group by node group.
///
/// Knows counts only, no bandwidths and no faults; of a custom fabric its cables too. Takes a spec
/// that has been checked.
class Numbering {
 public:
  explicit Numbering(const ClusterSpec& spec);

  int num_nodes() const { return num_nodes_; }
  int num_gpus() const { return first_device_[1]; }
  int num_leaf_groups() const { return num_leaf_groups_; }
  int num_leaves() const { return num_leaves_; }
  int num_domains() const { return num_domains_; }
  int num_pods() const { return num_pods_; }
  /// Spine devices of a pod and core devices over each: 1 where a layer counts as one device.
  int spines_per_pod() const { return spines_per_pod_; }
  int cores_per_spine() const { return cores_per_spine_; }
  int num_devices() const { return first_device_.back(); }
  int num_links() const { return 2 * first_cable_.back(); }

  int CountOf(DeviceKind kind) const;
  /// Number within its kind <-> id.
  base::DeviceId DeviceOf(DeviceKind kind, int number) const;
  int NumberOf(base::DeviceId device) const;
  DeviceKind KindOf(base::DeviceId device) const;

  base::LinkId UpLink(Cable cable, int number) const;
  base::LinkId DownLink(Cable cable, int number) const;
  CableEnd CableOf(base::LinkId link) const;

  Device DeviceAt(base::DeviceId id) const;
  /// The two ends of a cable, the one nearer to the GPUs first.
  std::pair<base::DeviceId, base::DeviceId> EndsOf(Cable cable, int number) const;
  /// Of all links that leave the device, in the order of their kinds and numbers.
  std::vector<base::LinkId> LinksFrom(base::DeviceId id) const;

  GpuPlace PlaceOf(int gpu) const;
  const Block& BlockOfNode(int node) const { return Find(&Block::first_node, node); }
  const Block& BlockOfSwitch(int pcie_switch) const {
    return Find(&Block::first_switch, pcie_switch);
  }
  const Block& BlockOfLeaf(int leaf) const { return Find(&Block::first_leaf, leaf); }
  const Block& BlockOfDomain(int domain) const { return Find(&Block::first_domain, domain); }
  const Block& BlockOfLeafGroup(int leaf_group) const {
    return Find(&Block::first_leaf_group, leaf_group);
  }
  int NodeOfSwitch(int pcie_switch) const;
  /// The next GPU of its NVLink domain, the first after the last.
  base::DeviceId NextInDomain(base::DeviceId gpu) const;
  int LeafOfNic(int nic) const;
  int LeafGroupOfNode(int node) const;
  int PodOfLeafGroup(int leaf_group) const { return leaf_group / leaf_groups_per_pod_; }
  int PodOfLeaf(int leaf) const;
  /// Leaves of the pods before this one; of the number of pods: all leaves.
  int FirstLeafOfPod(int pod) const;

  /// Of a custom fabric.
  bool is_custom() const { return is_custom_; }
  int num_custom_cables() const { return static_cast<int>(custom_cables_.size()); }
  const CustomCable& CustomCableAt(int number) const {
    return custom_cables_[static_cast<std::size_t>(number)];
  }
  const std::vector<base::LinkId>& LinksOfSwitch(int number) const {
    return links_of_switches_[static_cast<std::size_t>(number)];
  }
  /// Those that lead from a NIC into the fabric.
  const std::vector<base::LinkId>& CustomLinksOfNic(int nic) const {
    return links_of_nics_[static_cast<std::size_t>(nic)];
  }
  /// The GPUs of an NVLink domain: the first and how many.
  std::pair<int, int> GpusOfDomain(int domain) const;

  /// Cables by their ends; `spine` and `core` count in the pod and over the spine.
  int UplinkOf(int leaf, int spine) const { return leaf * spines_per_pod_ + spine; }
  int CoreLinkOf(int pod, int spine, int core) const {
    return (pod * spines_per_pod_ + spine) * cores_per_spine_ + core;
  }

 private:
  std::vector<base::LinkId> LinksFromLeaf(int leaf) const;
  std::vector<base::LinkId> LinksFromSpine(int spine) const;
  std::vector<base::LinkId> LinksFromDomain(int domain) const;
  void ReadCustomCables(const ClusterSpec& spec);
  void AddCustomCables(const ClusterSpec& spec, int spec_index);
  std::vector<int> NicsOf(const ClusterSpec& spec, const std::string& end) const;
  std::vector<base::LinkId> LinksDown(Cable cable, int first, int count, int stride = 1) const;
  const Block& Find(int Block::*first, int number) const;

  std::vector<Block> blocks_;
  int num_nodes_ = 0;
  int num_leaf_groups_ = 0;
  int num_leaves_ = 0;
  int num_domains_ = 0;
  int num_pods_ = 1;
  int leaf_groups_per_pod_ = 1;
  int spines_per_pod_ = 1;
  int cores_per_spine_ = 1;
  bool has_cores_ = false;
  bool has_ecmp_ = false;
  bool is_custom_ = false;
  std::vector<CustomCable> custom_cables_;
  std::vector<std::vector<base::LinkId>> links_of_switches_;
  std::vector<std::vector<base::LinkId>> links_of_nics_;
  std::array<int, kNumDeviceKinds + 1> first_device_{};
  std::array<int, kNumCables + 1> first_cable_{};
};

}  // namespace isthmus::topology::internal
