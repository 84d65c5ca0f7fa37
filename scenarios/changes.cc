#include "scenarios/changes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "scenarios/internal/diagnostics.h"
#include "scenarios/internal/fields.h"
#include "scenarios/internal/node.h"
#include "scenarios/internal/parse.h"
#include "scenarios/internal/recorder.h"

namespace isthmus::scenarios {
namespace {

using internal::Node;

constexpr std::string_view kParameterPrefix = "parameters.";
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kOfEveryGroup = {{
    {"cluster.nvlink.bandwidth", "nvlink_bandwidth"},
    {"cluster.nvlink.latency", "nvlink_latency"},
    {"cluster.nic.bandwidth", "nic_bandwidth"},
    {"cluster.nic.latency", "nic_latency"},
    {"cluster.pcie.bandwidth", "pcie_bandwidth"},
    {"cluster.pcie.latency", "pcie_latency"},
}};

std::string_view KeyOf(std::string_view assignment) {
  return assignment.substr(0, assignment.find('='));
}

std::string_view ValueOf(std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) return {};
  const std::string_view value = assignment.substr(equals + 1);
  const std::size_t begin = value.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return value.substr(begin, value.find_last_not_of(' ') + 1 - begin);
}

// The key of a node group that a key stands for in every group; empty if it is no such key.
std::string_view GroupKey(std::string_view key) {
  for (const auto& [name, group_key] : kOfEveryGroup) {
    if (key == name) return group_key;
  }
  return {};
}

// Whether a key looks as if it stood for one in every group.
bool MeansEveryGroup(std::string_view key) {
  return std::ranges::any_of(kOfEveryGroup, [key](const auto& entry) {
    return key.starts_with(entry.first.substr(0, entry.first.rfind('.') + 1));
  });
}

std::string HintOfEveryGroup(const std::string& key) {
  std::vector<std::string> names;
  for (const auto& [name, group_key] : kOfEveryGroup) names.emplace_back(name);
  return internal::NamesHint(key, names);
}

// Complains about a key of that kind that is misspelt, or has no value.
bool IsNoShortKey(const std::string& key, const std::string& value,
                  internal::Diagnostics& diagnostics) {
  const bool is_unknown = GroupKey(key).empty();
  if (!MeansEveryGroup(key) || (!is_unknown && !value.empty())) return false;
  diagnostics.Add(
      {internal::Origin::Kind::kSet, key, 0, 0}, {},
      is_unknown ? "unknown key" : "no value is given",
      is_unknown ? HintOfEveryGroup(key) : "write key.path=value, as in cluster.nic.bandwidth=2x");
  return true;
}

// The number a text is, all of it; numbers with a sign are none.
std::optional<double> UnsignedNumber(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(number) || text.starts_with('-')) return std::nullopt;
  return number;
}

// What a relative value multiplies by.
std::optional<double> FactorOf(std::string_view value) {
  if (value.ends_with('x')) return UnsignedNumber(value.substr(0, value.size() - 1));
  const bool is_more = value.starts_with('+');
  if (!value.ends_with('%') || !(is_more || value.starts_with('-'))) return std::nullopt;
  constexpr double kPercent = 100;
  const std::optional<double> percent = UnsignedNumber(value.substr(1, value.size() - 2));
  if (!percent || (!is_more && *percent > kPercent)) return std::nullopt;
  return (kPercent + (is_more ? *percent : -*percent)) / kPercent;
}

// "80000 ns" is "80 us".
void Shorten(double& number, std::string& unit) {
  constexpr double kStep = 1000;
  constexpr std::array<std::string_view, 9> kUnits = {"ns",   "us",   "ms",   "s",   "B/s",
                                                      "kB/s", "MB/s", "GB/s", "TB/s"};
  const std::size_t name = std::min(unit.find_first_not_of(' '), unit.size());
  const auto* known = std::ranges::find(kUnits, std::string_view(unit).substr(name));
  if (known == kUnits.end()) return;
  while (number >= kStep && *known != "s" && *known != "TB/s") {
    number /= kStep;
    ++known;
  }
  unit.replace(name, std::string::npos, *known);
}

// "50 GB/s" times 2 is "100 GB/s"; nothing for what doesn't begin with a number.
std::optional<std::string> Scaled(const std::string& text, double factor) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  number *= factor;
  std::string unit = end;
  Shorten(number, unit);
  // Fifteen digits drop the noise of the product.
  return fmt::format("{:.15g}{}", number, unit);
}

// What a scenario says, and what counts where it says nothing.
class Values {
 public:
  explicit Values(const Scenario& base) : base_(base) {
    internal::Diagnostics diagnostics;
    effective_ = internal::ParseYaml(base.effective_yaml, base.name, diagnostics);
    ISTHMUS_CHECK(diagnostics.empty(), "an effective scenario that is no YAML");
    topology::ClusterSpec cluster = base.cluster;  // archives take what they visit by reference
    internal::Recorder recorder(defaults_.At("cluster", {}),
                                internal::Recorder::Keys::kAllAndDefaults);
    internal::Fields(recorder, cluster);
  }

  // The single value at a key: a figure's is beside its source.
  std::string At(const std::string& key) const {
    if (key.starts_with(kParameterPrefix)) {
      const std::string name = key.substr(kParameterPrefix.size());
      return base_.profile.has(name) ? fmt::format("{}", base_.profile.Get(name).value) : "";
    }
    return internal::Locate(effective_, key).is_exact ? In(effective_, key) : In(defaults_, key);
  }

  // Whether a key is known to be one; a parameter is one by its form.
  bool Has(const std::string& key) const {
    return key.starts_with(kParameterPrefix) || internal::Locate(effective_, key).is_exact ||
           internal::Locate(defaults_, key).is_exact;
  }

 private:
  static std::string In(const Node& tree, const std::string& key) {
    const internal::Place place = internal::Locate(tree, key);
    if (!place.is_exact) return {};
    const Node* value = place.node->is_map() ? place.node->Find("value") : place.node;
    return value != nullptr && value->is_scalar() ? value->text : "";
  }

  const Scenario& base_;
  Node effective_;
  Node defaults_ = Node::Map();
};

// That what is at the assignment's key can't be multiplied.
void AddNoNumber(std::string_view assignment, const std::string& before,
                 internal::Diagnostics& diagnostics) {
  const std::string_view value = ValueOf(assignment);
  diagnostics.Add({internal::Origin::Kind::kSet, std::string(KeyOf(assignment)), 0, 0}, {},
                  fmt::format("there is no number that {} could multiply", value),
                  before.empty() ? "give the value itself"
                                 : fmt::format("it is {}; give the value itself, a text in "
                                               "quotes: {}='\"{}\"'",
                                               before, KeyOf(assignment), value));
}

}  // namespace

bool NeedsBase(std::string_view assignment) {
  return FactorOf(ValueOf(assignment)).has_value() || MeansEveryGroup(KeyOf(assignment));
}

std::vector<Change> ChangesOf(const Scenario& base, const std::vector<std::string>& assignments) {
  internal::Diagnostics diagnostics;
  const Values values(base);
  std::vector<Change> changes;
  for (const std::string& assignment : assignments) {
    if (assignment.find('=') == std::string::npos) {
      diagnostics.Add({internal::Origin::Kind::kSet, assignment, 0, 0}, {}, "no value is given",
                      "write key.path=value, as in nodes=2 or cluster.nic.bandwidth=2x");
      continue;
    }
    const std::string value(ValueOf(assignment));
    std::vector<std::string> keys = {std::string(KeyOf(assignment))};
    if (IsNoShortKey(keys.front(), value, diagnostics)) {
      continue;
    }
    if (const std::string_view group_key = GroupKey(keys.front()); !group_key.empty()) {
      keys.clear();
      for (const topology::NodeGroup& group : base.cluster.node_groups) {
        keys.push_back(fmt::format("cluster.node_groups.{}.{}", group.name, group_key));
      }
    }
    const std::optional<double> factor = FactorOf(value);
    for (std::string& key : keys) {
      std::string before = values.At(key);
      const std::optional<std::string> scaled = factor ? Scaled(before, *factor) : std::nullopt;
      if (factor && !scaled && values.Has(key)) AddNoNumber(assignment, before, diagnostics);
      std::string after = factor ? scaled.value_or('"' + value + '"') : value;
      if (std::ranges::find(changes, key, &Change::key) != changes.end()) {
        diagnostics.Add({internal::Origin::Kind::kSet, std::string(KeyOf(assignment)), 0, 0}, {},
                        fmt::format("{} is changed already", key), "change a key once");
      }
      changes.push_back({std::move(key), std::move(before), std::move(after)});
    }
  }
  diagnostics.ThrowIfAny();
  return changes;
}

std::vector<std::string> OverridesOf(const std::vector<Change>& changes) {
  std::vector<std::string> overrides;
  for (const Change& change : changes) overrides.push_back(change.key + "=" + change.after);
  return overrides;
}

std::vector<std::string> MakeAbsolute(
    const std::vector<std::string>& assignments,
    const std::function<Scenario(const std::vector<std::string>&)>& load) {
  if (std::ranges::none_of(assignments, NeedsBase)) return assignments;
  std::vector<std::string> others;
  std::ranges::copy_if(assignments, std::back_inserter(others),
                       [](const std::string& assignment) { return !NeedsBase(assignment); });
  const Scenario base = load(others);
  std::vector<std::string> absolute;
  for (const std::string& assignment : assignments) {
    if (!NeedsBase(assignment)) {
      absolute.push_back(assignment);
      continue;
    }
    std::ranges::move(OverridesOf(ChangesOf(base, {assignment})), std::back_inserter(absolute));
  }
  return absolute;
}

}  // namespace isthmus::scenarios
