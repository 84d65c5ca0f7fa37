#include "scenarios/internal/yaml_text.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace isthmus::scenarios::internal {
namespace {

// A line and the comment beside it.
struct Line {
  std::string text;
  std::string comment;
};

bool IsPlainSafe(std::string_view text) {
  if (text.empty() || text.front() == ' ' || text.back() == ' ') return false;
  const auto is_safe = [](char symbol) {
    return (symbol >= 'a' && symbol <= 'z') || (symbol >= 'A' && symbol <= 'Z') ||
           (symbol >= '0' && symbol <= '9') ||
           std::string_view(" _./+()-").find(symbol) != std::string_view::npos;
  };
  const bool starts_well = text.front() != '-' && text.front() != '.';
  return starts_well && std::ranges::all_of(text, is_safe) && text != "null" && text != "true" &&
         text != "false";
}

// Double quotes with the escapes that YAML and JSON share.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char symbol : text) {
    if (symbol == '"' || symbol == '\\') quoted += '\\';
    if (symbol == '\n') {
      quoted += "\\n";
    } else if (symbol == '\t') {
      quoted += "\\t";
    } else if (symbol == '\r') {
      quoted += "\\r";
    } else if (static_cast<unsigned char>(symbol) < 0x20U || symbol == 0x7F) {
      quoted += fmt::format("\\x{:02X}", static_cast<unsigned char>(symbol));
    } else {
      quoted += symbol;
    }
  }
  return quoted + '"';
}

std::string ScalarText(const Node& node) {
  if (node.is_null()) return "~";
  return node.is_quoted && !IsPlainSafe(node.text) ? Quoted(node.text) : node.text;
}

std::string KeyText(const std::string& key) { return IsPlainSafe(key) ? key : Quoted(key); }

// What fits in one line: single values, lists of them, and maps of a value and its source.
bool IsInline(const Node& node) {
  if (node.is_list()) {
    return std::ranges::all_of(
        node.items, [](const Node& item) { return item.is_scalar() && item.text.size() < 24; });
  }
  if (node.is_map()) {
    return node.entries.empty() ||
           (node.entries.size() <= 2 && node.entries.front().key == "value");
  }
  return true;
}

std::string InlineText(const Node& node) {
  std::vector<std::string> parts;
  if (node.is_list()) {
    for (const Node& item : node.items) parts.push_back(ScalarText(item));
    return fmt::format("[{}]", fmt::join(parts, ", "));
  }
  if (node.is_map()) {
    for (const Node::Entry& entry : node.entries) {
      parts.push_back(fmt::format("{}: {}", KeyText(entry.key), ScalarText(entry.value)));
    }
    return fmt::format("{{{}}}", fmt::join(parts, ", "));
  }
  return ScalarText(node);
}

class Printer {
 public:
  std::vector<Line> Take() && { return std::move(lines_); }

  // `prefix` is what the first line starts with ("- " of a list item).
  void PrintMap(const Node& map, const std::string& indent, std::string prefix) {
    for (const Node::Entry& entry : map.entries) {
      const std::string head = prefix + KeyText(entry.key) + ":";
      prefix = indent;
      PrintValue(entry.value, head, indent);
    }
  }

 private:
  void PrintValue(const Node& value, const std::string& head, const std::string& indent) {
    if (IsInline(value)) {
      lines_.push_back({head + " " + InlineText(value), OriginText(value)});
      return;
    }
    lines_.push_back({head, {}});
    if (value.is_map()) {
      PrintMap(value, indent + "  ", indent + "  ");
      return;
    }
    for (const Node& item : value.items) {
      if (item.is_map() && !item.entries.empty()) {
        PrintMap(item, indent + "    ", indent + "  - ");
      } else {
        lines_.push_back({indent + "  - " + InlineText(item), OriginText(item)});
      }
    }
  }

  static std::string OriginText(const Node& node) {
    const Node* told = &node;
    if (node.is_map() && !node.entries.empty()) told = &node.entries.front().value;
    return told->origin.Text();
  }

  std::vector<Line> lines_;
};

}  // namespace

std::string PrintYaml(const Node& tree, Comments comments) {
  Printer printer;
  printer.PrintMap(tree, "", "");
  const std::vector<Line> lines = std::move(printer).Take();
  // Long lines don't push everyone's comment to the right.
  constexpr std::size_t kMaxColumn = 56;
  std::size_t column = 0;
  for (const Line& line : lines) {
    if (!line.comment.empty() && line.text.size() <= kMaxColumn) {
      column = std::max(column, line.text.size());
    }
  }
  std::string text;
  for (const Line& line : lines) {
    const bool has_comment = comments == Comments::kOrigins && !line.comment.empty();
    text += has_comment ? fmt::format("{:<{}}  # {}\n", line.text, column, line.comment)
                        : line.text + "\n";
  }
  return text;
}

}  // namespace isthmus::scenarios::internal
