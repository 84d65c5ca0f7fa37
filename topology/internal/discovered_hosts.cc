#include "topology/internal/discovered_hosts.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace isthmus::topology::internal {

DiscoveredHosts::DiscoveredHosts(const DiscoveredText& read, const std::string& file,
                                 const std::string& pattern)
    : read_(read), file_(file), pattern_(pattern) {
  for (const auto& [key, node] : read.nodes) {
    if (node.is_switch || IsNic(node)) continue;
    left_out_.push_back(node.description.empty() ? key : node.description);
  }
  std::ranges::sort(left_out_, NaturalOrder());
  for (const auto& [ends, cable] : read.cables) {
    ++num_cables_[ends.first.first];
    ++num_cables_[ends.second.first];
  }
  for (const auto& [ends, cable] : read.cables) {
    // Keys of adapters, "H-…", come before those of switches, "S-…".
    const auto& [adapter, other] = ends;
    const auto node = read.nodes.find(adapter.first);
    if (node != read.nodes.end() && IsNic(node->second)) {
      Add(adapter, node->second, NicCable{other.first, cable});
    }
  }
  Check();
  if (!mistakes_.empty()) throw base::ScenarioError(mistakes_);
}

bool DiscoveredHosts::IsNic(const DiscoveredNode& node) const {
  if (node.is_switch || node.description.empty()) return false;
  if (!pattern_.empty()) return fnmatch(pattern_.c_str(), node.description.c_str(), 0) == 0;
  return node.description.find("Aggregation Node") == std::string::npos;
}

void DiscoveredHosts::Add(const DiscoveredPort& port, const DiscoveredNode& node,
                          const NicCable& cable) {
  const auto peer = read_.nodes.find(cable.to);
  if (peer == read_.nodes.end() || !peer->second.is_switch) {
    Mistake(cable.cable.line,
            fmt::format("\"{}\" is joined to no switch of this print", node.description),
            kPatternHint);
    return;
  }
  const std::size_t blank = std::min(node.description.find(' '), node.description.size());
  const std::string host = node.description.substr(0, blank);
  std::string device = node.description.substr(std::min(blank + 1, node.description.size()));
  if (num_cables_[port.first] > 1) device += fmt::format(" port {}", port.second);
  devices_.insert(device);
  if (nics_[host].try_emplace(device, cable).second) return;
  Mistake(node.line, fmt::format("host {} has \"{}\" twice", host, device),
          "give hosts names of their own (--node-name-map of ibnetdiscover)");
}

void DiscoveredHosts::Check() {
  if (nics_.empty() && mistakes_.empty()) {
    Mistake(0,
            fmt::format("none of its {} is a NIC of a node",
                        base::Counted(static_cast<std::int64_t>(left_out_.size()),
                                      "channel adapter", "channel adapters")),
            kPatternHint);
  }
  for (const auto& [host, nics] : nics_) {
    if (nics.size() * 2 >= devices_.size()) continue;
    Mistake(nics.begin()->second.cable.line,
            fmt::format("host {} has {} of {} NICs", host, nics.size(), devices_.size()),
            fmt::format("if it is no node with GPUs, {}", kPatternHint));
  }
}

void DiscoveredHosts::Mistake(int line, std::string what, std::string hint) {
  mistakes_.push_back({file_, line, line > 0 ? 1 : 0, std::move(what), std::move(hint)});
}

}  // namespace isthmus::topology::internal
