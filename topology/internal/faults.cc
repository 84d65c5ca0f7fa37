#include "topology/internal/faults.h"

#include <map>

namespace isthmus::topology::internal {
namespace {

using Factors = std::map<std::pair<Cable, int>, double>;

// The faults by cables, each switch of a layer being one.
class Faults {
 public:
  explicit Faults(const Numbering& switches) : switches_(switches) {}

  void Add(const LinkFault& fault) {
    const int node = fault.node.value();
    const Block& block = switches_.BlockOfNode(node);
    const int node_in_block = node - block.first_node;
    const int gpu = block.GpuOf(node, fault.index);
    const double factor = fault.bandwidth_factor;
    switch (fault.part) {
      case FaultyPart::kNvlink:
        return Multiply(kGpuNvlink, gpu, factor);
      case FaultyPart::kPcie:
        return Multiply(kGpuPcie, gpu, factor);
      case FaultyPart::kNic:
        return AddNic(block.first_switch + node_in_block * block.switches_per_node + fault.index,
                      factor);
      case FaultyPart::kUplink:
        return AddUplinks(block.LeafOf(node, fault.index), fault.to, factor);
      case FaultyPart::kCoreLink:
        return AddCoreLinks(PodOf(node), fault.index, fault.to, factor);
      case FaultyPart::kSpine:
        return AddSpine(PodOf(node), fault.index, factor);
      case FaultyPart::kCore:
        return AddCore(fault.index, factor);
      case FaultyPart::kCable:
        for (int number = 0; number < switches_.num_custom_cables(); ++number) {
          if (switches_.CustomCableAt(number).spec_index == fault.index) {
            Multiply(kCustom, number, factor);
          }
        }
        return;
      case FaultyPart::kSwitch:
        return AddLinks(switches_.LinksOfSwitch(fault.index), factor);
    }
  }

  const Factors& factors() const { return factors_; }

 private:
  int PodOf(int node) const { return switches_.PodOfLeafGroup(switches_.LeafGroupOfNode(node)); }

  void Multiply(Cable cable, int number, double factor) {
    factors_.try_emplace({cable, number}, 1).first->second *= factor;
  }

  void AddLinks(const std::vector<base::LinkId>& links, double factor) {
    for (const base::LinkId link : links) {
      const CableEnd end = switches_.CableOf(link);
      Multiply(end.cable, end.number, factor);
    }
  }

  void AddNic(int nic, double factor) {
    if (!switches_.is_custom()) return Multiply(kNicLeaf, nic, factor);
    AddLinks(switches_.CustomLinksOfNic(nic), factor);
  }

  void AddUplinks(int leaf, std::optional<int> only, double factor) {
    for (int spine = 0; spine < switches_.spines_per_pod(); ++spine) {
      if (!only || *only == spine) Multiply(kLeafSpine, switches_.UplinkOf(leaf, spine), factor);
    }
  }

  // `only` counts over all core switches.
  void AddCoreLinks(int pod, int spine, std::optional<int> only, double factor) {
    for (int core = 0; core < switches_.cores_per_spine(); ++core) {
      if (only && *only != spine * switches_.cores_per_spine() + core) continue;
      Multiply(kSpineCore, switches_.CoreLinkOf(pod, spine, core), factor);
    }
  }

  void AddSpine(int pod, int spine, double factor) {
    for (int leaf = switches_.FirstLeafOfPod(pod); leaf < switches_.FirstLeafOfPod(pod + 1);
         ++leaf) {
      Multiply(kLeafSpine, switches_.UplinkOf(leaf, spine), factor);
    }
    if (switches_.CountOf(DeviceKind::kCore) > 0) AddCoreLinks(pod, spine, std::nullopt, factor);
  }

  void AddCore(int core, double factor) {
    const int plane = core / switches_.cores_per_spine();
    for (int pod = 0; pod < switches_.num_pods(); ++pod) AddCoreLinks(pod, plane, core, factor);
  }

  const Numbering& switches_;
  Factors factors_;
};

// How many cables between single switches one of a layer stands for.
int CablesOfLayer(Cable cable, const Numbering& switches) {
  if (cable == kLeafSpine) return switches.spines_per_pod();
  if (cable == kSpineCore) return switches.spines_per_pod() * switches.cores_per_spine();
  return 1;
}

}  // namespace

std::vector<std::pair<base::LinkId, double>> LinkFactors(const ClusterSpec& spec,
                                                         const Numbering& numbering) {
  if (spec.link_faults.empty()) return {};
  ClusterSpec with_switches = spec;
  if (!with_switches.fabric.ecmp) with_switches.fabric.ecmp = Ecmp{};
  const Numbering switches(with_switches);
  Faults faults(switches);
  for (const LinkFault& fault : spec.link_faults) faults.Add(fault);

  std::map<base::LinkId, double> left;
  for (const auto& [cable, factor] : faults.factors()) {
    if (spec.fabric.ecmp) {
      left.emplace(numbering.UpLink(cable.first, cable.second), factor);
      continue;
    }
    const int together = CablesOfLayer(cable.first, switches);
    const base::LinkId link = numbering.UpLink(cable.first, cable.second / together);
    left.try_emplace(link, 1).first->second -= (1 - factor) / together;
  }
  // Switches that are all dead leave nothing, not a rounding error.
  for (auto& [link, factor] : left) factor = factor < 1e-9 ? 0 : factor;
  return {left.begin(), left.end()};
}

}  // namespace isthmus::topology::internal
