#include "scenarios/internal/parse.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <sstream>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/node/node.h>  // else clang-tidy takes YAML::Node of parser.h for ours
#include <yaml-cpp/parser.h>

#include "base/utf8.h"

namespace isthmus::scenarios::internal {
namespace {

// Ends the parse; its message is in the diagnostics already.
struct Stop {};

// Builds the tree from the parser's events. A stack of open collections, the key that waits for its
// value in each open map.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& label, Diagnostics& diagnostics, const ParseLimits& limits)
      : label_(label), diagnostics_(diagnostics), limits_(limits) {}

  Node TakeRoot() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Count(mark, anchor, {});
    Node node;
    node.origin = At(mark);
    Put(std::move(node));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Fail(mark, "aliases (*name) are not supported", "write the value out, or use `extends`");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Count(mark, anchor, tag);
    if (IsKeyNext()) {
      TakeKey(mark, value);
      return;
    }
    Node node = Node::Scalar(value, At(mark));
    node.is_quoted = tag == "!";
    const bool is_null = !node.is_quoted && (value == "~" || value == "null");
    if (is_null) node.kind = Node::Kind::kNull;
    Put(std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, Node::Kind::kList);
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, Node::Kind::kMap);
  }
  void OnMapEnd() override { Close(); }

  [[noreturn]] void Fail(const YAML::Mark& mark, std::string_view message, std::string hint) {
    diagnostics_.Add(At(mark), {}, message, std::move(hint));
    throw Stop{};
  }

  Origin At(const YAML::Mark& mark) const {
    return {Origin::Kind::kFile, label_, mark.line + 1, mark.column + 1};
  }

 private:
  struct Collection {
    Node node;
    std::unordered_set<std::string> keys;
    std::optional<Node::Entry> pending;  // the key whose value comes next
    bool is_duplicate = false;           // that key was there before: its value is dropped
  };

  bool IsKeyNext() const {
    return !stack_.empty() && stack_.back().node.is_map() && !stack_.back().pending;
  }

  void Count(const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& tag) {
    if (anchor != YAML::NullAnchor) {
      Fail(mark, "anchors (&name) are not supported", "write the value out, or use `extends`");
    }
    if (!tag.empty() && tag != "?" && tag != "!") {
      Fail(mark, fmt::format("the tag {} is not supported", tag), "leave it out");
    }
    if (++num_nodes_ > limits_.max_nodes) {
      Fail(mark, fmt::format("more than {} values in one file", limits_.max_nodes), {});
    }
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            Node::Kind kind) {
    Count(mark, anchor, tag);
    if (IsKeyNext()) Fail(mark, "a key must be a single word", {});
    if (static_cast<int>(stack_.size()) >= limits_.max_depth) {
      Fail(mark, fmt::format("nested more than {} deep", limits_.max_depth), {});
    }
    Collection open;
    open.node.kind = kind;
    open.node.origin = At(mark);
    stack_.push_back(std::move(open));
  }

  void Close() {
    Node node = std::move(stack_.back().node);
    stack_.pop_back();
    Put(std::move(node));
  }

  void TakeKey(const YAML::Mark& mark, const std::string& key) {
    Collection& open = stack_.back();
    open.is_duplicate = !open.keys.insert(key).second;
    if (open.is_duplicate) {
      const auto first = std::ranges::find(open.node.entries, key, &Node::Entry::key);
      diagnostics_.Add(
          At(mark), {},
          fmt::format("the key {} is here twice, first in line {}", key, first->origin.line),
          "delete one of them");
    }
    open.pending = Node::Entry{key, Node{}, At(mark)};
  }

  void Put(Node node) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Collection& open = stack_.back();
    if (open.node.is_list()) {
      open.node.items.push_back(std::move(node));
      return;
    }
    if (!open.pending) return;
    open.pending->value = std::move(node);
    if (!open.is_duplicate) open.node.entries.push_back(std::move(*open.pending));
    open.pending.reset();
  }

  const std::string& label_;
  Diagnostics& diagnostics_;
  const ParseLimits& limits_;
  std::vector<Collection> stack_;
  Node root_;
  std::size_t num_nodes_ = 0;
};

// Whether line `line` (from 0) starts with blanks that hold a tab.
bool IsIndentedByTab(std::string_view content, int line) {
  std::size_t start = 0;
  for (int passed = 0; passed < line; ++passed) {
    start = content.find('\n', start);
    if (start == std::string_view::npos) return false;
    ++start;
  }
  const std::size_t text = std::min(content.find_first_not_of(" \t", start), content.size());
  return content.substr(start, text - start).find('\t') != std::string_view::npos;
}

Origin OriginOfByte(std::string_view content, std::size_t position, const std::string& label) {
  const std::string_view before = content.substr(0, position);
  const auto line = std::ranges::count(before, '\n');
  const std::size_t start = before.rfind('\n');
  const std::size_t column = start == std::string_view::npos ? position : position - start - 1;
  return {Origin::Kind::kFile, label, static_cast<int>(line) + 1, static_cast<int>(column) + 1};
}

}  // namespace

Node ParseYaml(std::string_view content, const std::string& label, Diagnostics& diagnostics,
               const ParseLimits& limits) {
  if (content.size() > limits.max_bytes) {
    diagnostics.AddFile(label, fmt::format("the file has {} bytes, more than the {} allowed",
                                           content.size(), limits.max_bytes));
    return {};
  }
  if (const auto position = base::FindBinary(content)) {
    diagnostics.Add(OriginOfByte(content, *position, label), {},
                    fmt::format("this is no text file: byte 0x{:02X}",
                                static_cast<std::uint8_t>(content[*position])),
                    "a scenario is YAML in UTF-8");
    return {};
  }
  TreeBuilder builder(label, diagnostics, limits);
  try {
    std::istringstream stream{std::string(content)};
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    if (TreeBuilder rest(label, diagnostics, limits); parser.HandleNextDocument(rest)) {
      diagnostics.AddFile(label, "the file holds more than one YAML document",
                          "keep one document a file");
    }
    return builder.TakeRoot();
  } catch (const Stop&) {
    // Already in the diagnostics.
  } catch (const YAML::Exception& error) {
    const bool has_place = !error.mark.is_null();
    const std::size_t text_end = content.find_last_not_of(" \t\r\n") + 1;
    const bool is_at_end = has_place && static_cast<std::size_t>(error.mark.pos) >= text_end;
    diagnostics.Add(has_place ? builder.At(error.mark) : Origin{Origin::Kind::kFile, label, 0, 0},
                    {}, fmt::format("not valid YAML: {}", error.msg),
                    is_at_end ? "the file seems to be cut off"
                    : has_place && IsIndentedByTab(content, error.mark.line)
                        ? "indent with blanks, not with tabs"
                        : "");
  }
  return {};
}

}  // namespace isthmus::scenarios::internal
