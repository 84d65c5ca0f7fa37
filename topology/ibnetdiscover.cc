#include "topology/ibnetdiscover.h"

#include <algorithm>
#include <map>
#include <optional>
#include <regex>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "topology/internal/discovered_hosts.h"
#include "topology/internal/ibnetdiscover_text.h"
#include "topology/internal/natural_order.h"

namespace isthmus::topology {
namespace {

using internal::DiscoveredCable;
using internal::DiscoveredHosts;
using internal::DiscoveredText;
using internal::NaturalOrder;

// "MF0;leaf-1:MQM9700/U1" is "leaf-1".
std::string WithoutMarks(const std::string& description) {
  static const std::regex marks(R"((?:[A-Z]+\d*;)?([^;:]+)(?::[^:]*)?)");
  std::smatch parts;
  return std::regex_match(description, parts, marks) ? parts[1].str() : description;
}

// The switches that have cables: their keys by name, as short as tells them apart.
std::map<std::string, std::string, NaturalOrder> NameSwitches(const DiscoveredText& read) {
  std::set<std::string> cabled;
  for (const auto& [ends, cable] : read.cables) {
    cabled.insert(ends.first.first);
    cabled.insert(ends.second.first);
  }
  std::map<std::string, int> num_called;
  std::map<std::string, int> num_described;
  for (const auto& [key, node] : read.nodes) {
    if (!node.is_switch) continue;
    ++num_called[WithoutMarks(node.description)];
    ++num_described[node.description];
  }
  std::map<std::string, std::string, NaturalOrder> keys;
  for (const auto& [key, node] : read.nodes) {
    if (!node.is_switch || !cabled.contains(key)) continue;
    std::string name = WithoutMarks(node.description);
    if (num_called[name] > 1) name = node.description;
    if (num_described[name] > 1) name += " " + key;
    keys.emplace(std::move(name), key);
  }
  return keys;
}

class Wiring {
 public:
  Wiring(const DiscoveredText& read, const DiscoveredHosts& hosts, const std::string& file)
      : read_(read), file_(file) {
    for (const auto& [name, key] : NameSwitches(read)) {
      names_.emplace(key, name);
      found_.fabric.switches.push_back(name);
    }
    for (const auto& [host, nics] : hosts.nics()) found_.hosts.push_back(host);
    found_.nics.assign(hosts.devices().begin(), hosts.devices().end());
    found_.left_out = hosts.left_out();
    int index = 0;
    for (const std::string& device : hosts.devices()) JoinNics(hosts, device, index++);
    JoinSwitches();
  }

  DiscoveredFabric Take() && { return std::move(found_); }

 private:
  Sourced<base::BytesPerSecond> BandwidthOf(const DiscoveredCable& cable) const {
    if (!cable.bandwidth) return {};
    return {*cable.bandwidth, fmt::format("{}: {}", file_, cable.speed)};
  }

  // The NICs of one index: nodes in a row on one switch at one speed are one entry.
  void JoinNics(const DiscoveredHosts& hosts, const std::string& device, int index) {
    const internal::NicCable* last = nullptr;
    for (const auto& [host, nics] : hosts.nics()) {
      const auto own = nics.find(device);
      if (own != nics.end() && last == nullptr) last = &own->second;
    }
    int node = 0;
    int first = 0;
    std::optional<CableSpec> open;
    for (const auto& [host, nics] : hosts.nics()) {
      const auto own = nics.find(device);
      if (own != nics.end()) {
        last = &own->second;
      } else {
        found_.lost_nics.push_back(
            {.part = FaultyPart::kNic, .node = base::NodeId{node}, .index = index});
      }
      CableSpec cable{.from = "",
                      .to = names_.at(last->to),
                      .count = 1,
                      .bandwidth = BandwidthOf(last->cable),
                      .latency = {}};
      if (!open || !(*open == cable)) {
        if (open) Close(*open, first, node - 1, index);
        first = node;
        open = std::move(cable);
      }
      ++node;
    }
    Close(*open, first, node - 1, index);
  }

  void Close(CableSpec cable, int first, int last, int index) {
    cable.from = first == last ? fmt::format("nic {}.{}", first, index)
                               : fmt::format("nic {}-{}.{}", first, last, index);
    found_.fabric.cables.push_back(std::move(cable));
  }

  void JoinSwitches() {
    std::map<std::pair<std::string, std::string>, std::vector<const DiscoveredCable*>> cables;
    for (const auto& [ends, cable] : read_.cables) {
      const auto from = names_.find(ends.first.first);
      const auto to = names_.find(ends.second.first);
      if (from == names_.end() || to == names_.end() || from == to) continue;
      cables[std::minmax(from->second, to->second, NaturalOrder())].push_back(&cable);
    }
    for (const auto& [ends, parallel] : cables) {
      found_.fabric.cables.push_back(Parallel(ends, parallel));
    }
  }

  // Cables side by side are one entry; if they differ, one that carries what they do together.
  CableSpec Parallel(const std::pair<std::string, std::string>& ends,
                     const std::vector<const DiscoveredCable*>& parallel) const {
    CableSpec cable{.from = ends.first, .to = ends.second, .bandwidth = BandwidthOf(*parallel[0])};
    cable.count = static_cast<int>(parallel.size());
    const bool is_mixed = std::ranges::any_of(parallel, [&](const DiscoveredCable* other) {
      return other->bandwidth && other->speed != parallel[0]->speed;
    });
    if (!is_mixed) return cable;
    double sum = 0;
    std::string speeds;
    for (const DiscoveredCable* other : parallel) {
      if (!other->bandwidth) continue;
      sum += other->bandwidth->value();
      speeds += fmt::format("{}{}", speeds.empty() ? "" : " + ", other->speed);
    }
    cable.count = 1;
    cable.bandwidth = {base::BytesPerSecond(sum), fmt::format("{}: {}", file_, speeds)};
    return cable;
  }

  const DiscoveredText& read_;
  std::string file_;
  std::map<std::string, std::string> names_;  // of switches, by key
  DiscoveredFabric found_;
};

}  // namespace

DiscoveredFabric ReadIbnetdiscover(std::string_view text, const std::string& file,
                                   const std::string& nics) {
  const DiscoveredText read = internal::ParseIbnetdiscover(text, file);
  const DiscoveredHosts hosts(read, file, nics);
  return Wiring(read, hosts, file).Take();
}

ClusterSpec WithFabric(ClusterSpec cluster, const DiscoveredFabric& found,
                       const std::string& file) {
  if (cluster.node_groups.size() != 1) {
    throw base::Error(fmt::format(
        "{} has {} node groups; the nodes of a fabric that was discovered are of one kind",
        cluster.name, cluster.node_groups.size()));
  }
  NodeGroup& nodes = cluster.node_groups.front();
  const int num_nics = static_cast<int>(found.nics.size());
  if (num_nics > nodes.gpus_per_node || nodes.gpus_per_node % num_nics != 0) {
    throw base::Error(fmt::format(
        "{}: hosts have {} ({} … {}), which the {} of a node of {} can't share equally\n"
        "  hint: {}",
        file, base::Counted(num_nics, "NIC", "NICs"), found.nics.front(), found.nics.back(),
        base::Counted(nodes.gpus_per_node, "GPU", "GPUs"), cluster.name, internal::kPatternHint));
  }
  nodes.num_nodes = static_cast<int>(found.hosts.size());
  nodes.nics_per_node = num_nics;
  nodes.source += fmt::format("; nodes and NICs: {}", file);
  FabricSpec fabric;  // nothing of the layers that there were
  fabric.spine_port_bandwidth = cluster.fabric.spine_port_bandwidth;
  fabric.hop_latency = cluster.fabric.hop_latency;
  fabric.ecmp = cluster.fabric.ecmp;
  fabric.custom = found.fabric;
  cluster.fabric = std::move(fabric);
  cluster.name += " (changed)";
  cluster.link_faults = found.lost_nics;
  return cluster;
}

}  // namespace isthmus::topology
