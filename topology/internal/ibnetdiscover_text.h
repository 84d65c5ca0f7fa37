#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/units.h"

namespace isthmus::topology::internal {

/// A switch or channel adapter that ibnetdiscover found.
struct DiscoveredNode {
  std::string description;  // "MF0;leaf-1:MQM9700/U1", "gpu-017 mlx5_3"; of a switch never empty
  bool is_switch = false;
  int line = 0;
};

/// A port by its node's key ("S-…", "H-…") and number.
using DiscoveredPort = std::pair<std::string, int>;

struct DiscoveredCable {
  std::optional<base::BytesPerSecond> bandwidth;  // as negotiated; absent where none was printed
  std::string speed;                              // "4xNDR", as printed
  int line = 0;
};

/// Everything one print says. By key, so the order of its lines doesn't matter.
struct DiscoveredText {
  std::map<std::string, DiscoveredNode> nodes;
  /// Each cable once, the lower end first.
  std::map<std::pair<DiscoveredPort, DiscoveredPort>, DiscoveredCable> cables;
};

/// Reads what `ibnetdiscover` (infiniband-diags) prints without options, also with --full or
/// --grouping, and files for ibsim. `file` names it in mistakes. Throws base::ScenarioError with
/// every line that can't be read, where there is no switch at all, and where cables lead to nodes
/// without a section, as in a file that was cut off.
DiscoveredText ParseIbnetdiscover(std::string_view text, const std::string& file);

}  // namespace isthmus::topology::internal
