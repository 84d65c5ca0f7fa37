#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "topology/internal/ibnetdiscover_text.h"
#include "topology/internal/natural_order.h"

namespace isthmus::topology::internal {

inline constexpr const char* kPatternHint = "say which adapters count, as in --nics 'gpu-* mlx5_*'";

/// A NIC's cable: the switch on its other side by key, and how fast it is.
struct NicCable {
  std::string to;
  DiscoveredCable cable;
};

/// The NICs of all hosts that a print names, by name of host and device.
///
/// Lifetime: the print must outlive it.
class DiscoveredHosts {
 public:
  using Nics = std::map<std::string, NicCable, NaturalOrder>;

  /// `pattern` as ReadIbnetdiscover's; `file` is named in mistakes. Throws base::ScenarioError with
  /// all of them.
  DiscoveredHosts(const DiscoveredText& read, const std::string& file, const std::string& pattern);

  const std::map<std::string, Nics, NaturalOrder>& nics() const { return nics_; }
  /// Of all hosts: index i of a node is the i-th.
  const std::set<std::string, NaturalOrder>& devices() const { return devices_; }
  /// Descriptions of adapters that aren't NICs of a node, in natural order.
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  bool IsNic(const DiscoveredNode& node) const;
  void Add(const DiscoveredPort& port, const DiscoveredNode& node, const NicCable& cable);
  void Check();
  void Mistake(int line, std::string what, std::string hint);

  const DiscoveredText& read_;
  std::string file_;
  std::string pattern_;
  std::map<std::string, int> num_cables_;  // by key
  std::map<std::string, Nics, NaturalOrder> nics_;
  std::set<std::string, NaturalOrder> devices_;
  std::vector<std::string> left_out_;
  std::vector<base::Diagnostic> mistakes_;
};

}  // namespace isthmus::topology::internal
