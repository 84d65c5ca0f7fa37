#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/scenario.h"

/// Overrides in relation to what a scenario says: twice the bandwidth, a fifth less.
namespace isthmus::scenarios {

/// A key that a change is about.
struct Change {
  std::string key;     ///< in full: "cluster.node_groups.dgx.nic_bandwidth"
  std::string before;  ///< the scenario's single value, empty where it has none
  std::string after;   ///< as it is to be read
};

/// Whether an assignment `key.path=value` only means something beside a scenario: its value is
/// relative (`2x`, `+10%`, `-20%`; factors are not negative), or its key stands for several keys.
/// `cluster.nic.bandwidth` is `nic_bandwidth` of every node group, and so are `nvlink`, `pcie` and
/// `latency`.
bool NeedsBase(std::string_view assignment);

/// What assignments change in `base`, each with its keys in full and its value absolute. A relative
/// value is of the number that the key has in `base`, whatever other assignments do, defaults and
/// derived values included; of `parameters.KEY` that of the profile. Of a key that isn't there the
/// value is the text, quoted, for the reader to refuse. Throws base::ScenarioError with every
/// assignment that has no `=`, changes a key again, or multiplies what is no number.
std::vector<Change> ChangesOf(const Scenario& base, const std::vector<std::string>& assignments);

/// As assignments.
std::vector<std::string> OverridesOf(const std::vector<Change>& changes);

/// Assignments in their order, those that need a base as what they change in the scenario that all
/// others give: `load` makes it, and is called if there are any.
std::vector<std::string> MakeAbsolute(
    const std::vector<std::string>& assignments,
    const std::function<Scenario(const std::vector<std::string>&)>& load);

}  // namespace isthmus::scenarios
