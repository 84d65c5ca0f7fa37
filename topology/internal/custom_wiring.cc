#include "topology/internal/custom_wiring.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

namespace isthmus::topology::internal {
namespace {

std::optional<int> ReadNumber(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole && number >= 0 ? std::optional(number) : std::nullopt;
}

// A number, "0-7", or "*" for 0 to `last`.
std::optional<Span> ReadSpan(std::string_view text, int last) {
  if (text == "*") return Span{0, last};
  const std::size_t dash = text.find('-');
  const std::optional<int> first = ReadNumber(text.substr(0, dash));
  const std::optional<int> end =
      dash == std::string_view::npos ? first : ReadNumber(text.substr(dash + 1));
  if (!first || !end || *first > *end) return std::nullopt;
  return Span{*first, *end};
}

}  // namespace

CableEndSpec ReadCableEnd(const ClusterSpec& spec, std::string_view text) {
  const std::vector<std::string>& switches = spec.fabric.custom->switches;
  const auto found = std::ranges::find(switches, text);
  if (found != switches.end()) return static_cast<int>(found - switches.begin());
  constexpr std::string_view kNic = "nic ";
  if (!text.starts_with(kNic)) return fmt::format("there is no switch \"{}\"", text);
  const std::string_view numbers = text.substr(kNic.size());
  const std::size_t dot = numbers.find('.');
  const int num_nodes = NumNodes(spec);
  const auto nodes = ReadSpan(numbers.substr(0, dot), num_nodes - 1);
  const auto indices =
      dot == std::string_view::npos ? std::nullopt : ReadSpan(numbers.substr(dot + 1), 0);
  if (!nodes || !indices) return fmt::format("\"{}\" is no NIC", text);
  if (nodes->last >= num_nodes) return fmt::format("there is no node {}", nodes->last);
  const bool has_all = numbers.substr(dot + 1) == "*";
  int first_node = 0;
  for (const NodeGroup& group : spec.node_groups) {
    const bool is_named = nodes->first < first_node + group.num_nodes && nodes->last >= first_node;
    if (is_named && !has_all && indices->last >= group.nics_per_node) {
      return fmt::format("nodes of {} have NICs 0 to {}", group.name, group.nics_per_node - 1);
    }
    first_node += group.num_nodes;
  }
  return NicEnds{*nodes, *indices, has_all};
}

}  // namespace isthmus::topology::internal
