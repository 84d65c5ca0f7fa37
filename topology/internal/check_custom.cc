#include "topology/internal/check_custom.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "topology/internal/check_fabric.h"
#include "topology/internal/custom_wiring.h"

namespace isthmus::topology::internal {
namespace {

constexpr const char* kEndHint =
    "name one of fabric.custom.switches, or NICs as in \"nic 0.3\", \"nic 0-7.3\" or \"nic *.*\"";

void CheckSwitches(const CustomFabric& custom, Mistakes& mistakes) {
  if (custom.switches.empty() || custom.switches.size() > kMaxCustomSwitches) {
    mistakes.Add("fabric.custom.switches", fmt::format("names {} switches", custom.switches.size()),
                 fmt::format("give 1 to {}", kMaxCustomSwitches));
  }
  std::set<std::string> names;
  for (std::size_t index = 0; index < custom.switches.size(); ++index) {
    const std::string& name = custom.switches[index];
    if (names.insert(name).second && !name.empty() && !name.starts_with("nic ")) continue;
    mistakes.Add(fmt::format("fabric.custom.switches.{}", index),
                 fmt::format("\"{}\" is empty, a NIC, or used twice", name),
                 "give every switch a name of its own");
  }
}

// Which NICs have cables, and to which switches.
class NicCables {
 public:
  explicit NicCables(const ClusterSpec& spec) : spec_(spec) {}

  void Add(const NicEnds& ends, int to, const std::string& path, Mistakes& mistakes) {
    for (int node = ends.nodes.first; node <= ends.nodes.last; ++node) {
      const int last =
          ends.has_all_indices ? GroupOfNode(spec_, node)->nics_per_node - 1 : ends.indices.last;
      for (int index = ends.indices.first; index <= last; ++index) {
        nics_.emplace(node, index);
        if (cables_.emplace(node, index, to).second || is_told_) continue;
        is_told_ = true;
        mistakes.Add(path, fmt::format("joins nic {}.{} to this switch again", node, index),
                     "several cables between the same ends are one with a `count`");
      }
    }
  }

  void CheckAll(Mistakes& mistakes) const {
    int node = 0;
    for (const NodeGroup& group : spec_.node_groups) {
      for (int end = node + group.num_nodes; node < end; ++node) {
        for (int index = 0; index < group.nics_per_node; ++index) {
          if (nics_.contains({node, index})) continue;
          mistakes.Add("fabric.custom.cables", fmt::format("nic {}.{} has no cable", node, index),
                       "join every NIC to a switch, or say fewer nics_per_node");
          return;
        }
      }
    }
  }

 private:
  const ClusterSpec& spec_;
  std::set<std::pair<int, int>> nics_;
  std::set<std::tuple<int, int, int>> cables_;
  bool is_told_ = false;
};

// Of an end that can't be read, why.
bool CheckEnd(const CableEndSpec& end, const std::string& path, Mistakes& mistakes) {
  const auto* why = std::get_if<std::string>(&end);
  if (why != nullptr) mistakes.Add(path, *why, kEndHint);
  return why == nullptr;
}

// Those of the cable, or of what it takes them from.
void CheckFigures(const ClusterSpec& spec, const CableSpec& cable, bool is_of_nic,
                  const std::string& path, Mistakes& mistakes) {
  if (cable.count < 1) {
    mistakes.Add(path + ".count", fmt::format("found {}", cable.count), "use 1 or more");
  }
  if (!cable.bandwidth.source.empty()) {
    mistakes.CheckPositive(path + ".bandwidth", cable.bandwidth);
  } else if (!is_of_nic && spec.fabric.spine_port_bandwidth.value.value() <= 0) {
    mistakes.Add(path, "has no bandwidth",
                 "give it, or fabric.spine_port_bandwidth for all cables between switches");
  }
  if (!cable.latency.source.empty()) {
    mistakes.CheckLatency(path + ".latency", cable.latency);
  } else if (!is_of_nic && spec.fabric.hop_latency.source.empty()) {
    mistakes.Add(path, "has no latency",
                 "give it, or fabric.hop_latency for all cables between switches");
  }
}

}  // namespace

void CheckCustom(const ClusterSpec& spec, Mistakes& mistakes) {
  const CustomFabric& custom = *spec.fabric.custom;
  if (spec.fabric.core) {
    mistakes.Add("fabric.core", "is given beside a custom fabric", "leave one of the two out");
  }
  CheckSwitches(custom, mistakes);
  NicCables nics(spec);
  std::set<std::pair<int, int>> between;
  for (std::size_t index = 0; index < custom.cables.size(); ++index) {
    const CableSpec& cable = custom.cables[index];
    const std::string path = fmt::format("fabric.custom.cables.{}", index);
    const CableEndSpec from = ReadCableEnd(spec, cable.from);
    const CableEndSpec to = ReadCableEnd(spec, cable.to);
    const bool is_from_read = CheckEnd(from, path + ".from", mistakes);
    if (!CheckEnd(to, path + ".to", mistakes) || !is_from_read) continue;
    const int* from_switch = std::get_if<int>(&from);
    const int* to_switch = std::get_if<int>(&to);
    CheckFigures(spec, cable, from_switch == nullptr || to_switch == nullptr, path, mistakes);
    if (from_switch == nullptr && to_switch == nullptr) {
      mistakes.Add(path, "joins NICs to NICs", "put a switch between them");
    } else if (from_switch == nullptr) {
      nics.Add(std::get<NicEnds>(from), *to_switch, path, mistakes);
    } else if (to_switch == nullptr) {
      nics.Add(std::get<NicEnds>(to), *from_switch, path, mistakes);
    } else if (!between.insert(std::minmax(*from_switch, *to_switch)).second ||
               *from_switch == *to_switch) {
      mistakes.Add(path, "joins a switch to itself, or to another one again",
                   "several cables between the same ends are one with a `count`");
    }
  }
  nics.CheckAll(mistakes);
}

}  // namespace isthmus::topology::internal
