#include "backend/launch/internal/slurm.h"

#include <charconv>

namespace isthmus::backend::internal {
namespace {

// Takes a number off the front of `text`.
std::optional<std::int64_t> TakeNumber(std::string_view& text) {
  std::int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  return number;
}

bool TakeWord(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

}  // namespace

std::optional<std::string> FirstHost(std::string_view node_list) {
  std::string host;
  while (!node_list.empty() && node_list.front() != ',') {
    if (node_list.front() != '[') {
      host += node_list.front();
      node_list.remove_prefix(1);
      continue;
    }
    const std::size_t end = node_list.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view range = node_list.substr(1, end - 1);
    // Digits keep their leading zeros: they are part of the name.
    host += range.substr(0, range.find_first_of(",-"));
    node_list.remove_prefix(end + 1);
  }
  if (host.empty()) return std::nullopt;
  return host;
}

std::optional<std::int64_t> TasksOfNode(std::string_view tasks_per_node, std::int64_t node) {
  std::int64_t next_node = 0;
  while (!tasks_per_node.empty()) {
    const std::optional<std::int64_t> tasks = TakeNumber(tasks_per_node);
    if (!tasks) return std::nullopt;
    std::int64_t repeats = 1;
    if (TakeWord(tasks_per_node, "(x")) {
      const std::optional<std::int64_t> number = TakeNumber(tasks_per_node);
      if (!number || !TakeWord(tasks_per_node, ")")) return std::nullopt;
      repeats = *number;
    }
    next_node += repeats;
    if (node < next_node) return tasks;
    if (!TakeWord(tasks_per_node, ",")) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace isthmus::backend::internal
