#include "scenarios/internal/sources.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file_io.h"
#include "base/units.h"
#include "scenarios/internal/parse.h"

namespace isthmus::scenarios::internal {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxChain = 16;
constexpr std::ptrdiff_t kMaxDots = 16;
constexpr std::int64_t kMaxFileBytes = std::int64_t{1} << 20U;

// Names have no ending and may lead into subfolders: examples/gpt-8gpu.
bool IsPath(std::string_view name) {
  return name.starts_with('/') || name.starts_with("./") || name.starts_with("../") ||
         name.ends_with(".yaml") || name.ends_with(".yml");
}

// Why a path is no file to read; nothing if it is one.
std::optional<std::string> WhyNoFile(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) return "is a directory, not a file";
  if (fs::exists(status)) return std::nullopt;
  const bool is_link = fs::is_symlink(fs::symlink_status(path, error));
  if (is_link) {
    return fmt::format("is a link to {}, which does not exist",
                       fs::read_symlink(path, error).string());
  }
  return "there is no such file";
}

void MarkAsSet(Node& node, const std::string& key) {
  node.origin = {Origin::Kind::kSet, key, 0, 0};
  for (Node& item : node.items) MarkAsSet(item, key);
  for (Node::Entry& entry : node.entries) {
    entry.origin = node.origin;
    MarkAsSet(entry.value, key);
  }
}

// Whether the value at a path names a preset: `cluster`, `modules.NAME.model`.
bool IsPresetPath(std::string_view path) {
  if (path == "cluster") return true;
  if (!path.starts_with("modules.") || !path.ends_with(".model")) return false;
  return std::ranges::count(path, '.') == 2;
}

// The profile's keys have dots of their own: `parameters.KEY=number` is the item `KEY=number`.
constexpr std::string_view kParameterPrefix = "parameters.";

void AddParameter(Node& root, const std::string& key, const Node& value) {
  if (!root.is_map()) return;
  Node* list = root.Find("parameters");
  if (list == nullptr) {
    Node empty;
    empty.kind = Node::Kind::kList;
    empty.origin = value.origin;
    root.entries.push_back({"parameters", std::move(empty), value.origin});
    list = &root.entries.back().value;
  }
  Node item = value;
  item.text = key + "=" + value.text;
  if (list->is_list()) list->items.push_back(std::move(item));
}

std::vector<std::string> KeysOf(const Node& map) {
  std::vector<std::string> keys;
  for (const Node::Entry& entry : map.entries) keys.push_back(entry.key);
  return keys;
}

// What builds on a preset and has no name of its own is told apart from it.
void MarkAsChanged(Node& preset) {
  constexpr std::string_view kMark = " (changed)";
  Node* name = preset.Find("name");
  if (name == nullptr || !name->is_scalar() || name->text.ends_with(kMark)) return;
  name->text += kMark;
  name->origin = {Origin::Kind::kDerived, {}, 0, 0};
}

}  // namespace

Node Sources::ReadOne(const fs::path& path, const std::string& label) {
  folder_of_label_[label] = path.parent_path();
  if (const auto why = WhyNoFile(path)) {
    diagnostics_.AddFile(label, *why);
    return {};
  }
  try {
    const std::string content = base::ReadFile(path, base::Bytes(kMaxFileBytes));
    return Parse(content, label);
  } catch (const base::Error& error) {
    diagnostics_.AddFile(label, error.what());
    return {};
  }
}

Node Sources::Parse(std::string_view content, const std::string& label) {
  Diagnostics found;
  Node root = ParseYaml(content, label, found);
  if (root.is_null() && found.empty()) found.AddFile(label, "the file is empty");
  diagnostics_.Take(std::move(found));
  return root;
}

Node Sources::ReadFile(const fs::path& path, const std::string& label) {
  Node root = ReadOne(path, label);
  failed_ = root.is_null() || !Extend(root, FileKind::kScenario, "extends", {label});
  return root;
}

Node Sources::ReadText(std::string_view text, const std::string& label, const fs::path& folder) {
  folder_of_label_[label] = folder;
  Node root = Parse(text, label);
  failed_ = root.is_null() || !Extend(root, FileKind::kScenario, "extends", {label});
  return root;
}

bool Sources::FindFile(const std::string& name, FileKind kind, const Origin& named_by,
                       const std::string& key_path, Found& found) {
  if (IsPath(name)) {
    const auto folder = folder_of_label_.find(named_by.file);
    found.path = folder == folder_of_label_.end() ? fs::path(name) : folder->second / name;
    found.path = found.path.lexically_normal();
    found.label = found.path.generic_string();
    if (const auto why = WhyNoFile(found.path)) {
      const bool is_profile = kind == FileKind::kGpu || kind == FileKind::kProfile;
      diagnostics_.Add(named_by, key_path, fmt::format("{}: {}", found.label, *why),
                       is_profile ? fmt::format("`isthmus calibrate -o {}` measures the machine at "
                                                "hand",
                                                found.label)
                                  : std::string());
      return false;
    }
    return true;
  }
  if (const auto shipped = FindShipped(kind, name, search_)) {
    found = {shipped->path, shipped->label};
    return true;
  }
  const char* const what = kind == FileKind::kModel      ? "model"
                           : kind == FileKind::kCluster  ? "cluster"
                           : kind == FileKind::kScenario ? "scenario"
                                                         : "profile";
  diagnostics_.Add(named_by, key_path, fmt::format("there is no {} named {}", what, name),
                   NamesHint(name, ShippedNames(kind, search_)));
  return false;
}

bool Sources::Extend(Node& node, FileKind kind, const std::string& key_path,
                     std::vector<std::string> chain) {
  if (!node.is_map()) return true;
  const Node* named = node.Find("extends");
  if (named == nullptr) return true;
  const Node name = *named;
  node.Erase("extends");
  const bool is_changed = !node.entries.empty() && node.Find("name") == nullptr;
  if (!name.is_scalar()) {
    diagnostics_.Add(name.origin, key_path,
                     fmt::format("found {}, expected the name of a file", KindText(name.kind)));
    return false;
  }
  Found found;
  if (!FindFile(name.text, kind, name.origin, key_path, found)) return false;
  const bool is_loop = std::ranges::find(chain, found.label) != chain.end();
  chain.push_back(found.label);
  if (is_loop || chain.size() > kMaxChain) {
    diagnostics_.Add(name.origin, key_path,
                     fmt::format("{}: {}",
                                 is_loop ? "files extend each other in a loop"
                                         : "the chain of files is too long",
                                 fmt::join(chain, " -> ")));
    return false;
  }
  Node base = ReadOne(found.path, found.label);
  if (base.is_null() || !Extend(base, kind, key_path, std::move(chain))) return false;
  if (kind == FileKind::kScenario && base.is_map()) {
    // What a file is called and says about itself does not hold for those that build on it.
    base.Erase("name");
    base.Erase("description");
  } else if (is_changed && base.is_map()) {
    MarkAsChanged(base);
  }
  MergeOver(base, std::move(node));
  node = std::move(base);
  return true;
}

Node* Sources::Descend(Node& node, const std::string& path, const std::string& key, bool is_last,
                       const Origin& origin) {
  if (node.is_scalar() && IsPresetPath(path)) {
    Node preset = Node::Map(node.origin);
    preset.entries.push_back({"extends", node, node.origin});
    node = std::move(preset);
  }
  if (path == "modules" && !is_last && node.is_map() && node.Find(key) == nullptr) {
    diagnostics_.Add(origin, {}, fmt::format("there is no module named {}", key),
                     NamesHint(key, KeysOf(node)));
    return nullptr;
  }
  if (node.is_list()) {
    const Place item = Locate(node, key);
    if (item.is_exact) return &node.items[static_cast<std::size_t>(item.node - node.items.data())];
    diagnostics_.Add(origin, {}, fmt::format("{} has no item {}", path, key),
                     fmt::format("it has {} items, counted from 0", node.items.size()));
    return nullptr;
  }
  const bool is_index = !key.empty() && key.find_first_not_of("0123456789") == std::string::npos;
  if (node.is_null() && is_index) {
    diagnostics_.Add(origin, {}, fmt::format("{} has no item {}", path, key),
                     fmt::format("give the list as a whole: {}=[{{…}}, …]", path));
    return nullptr;
  }
  if (!node.is_map()) node = Node::Map(origin);
  return &node.At(key, origin);
}

void Sources::Set(Node& root, const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  const std::string path = assignment.substr(0, equals);
  const Origin origin{Origin::Kind::kSet, path, 0, 0};
  if (equals == std::string::npos || path.empty()) {
    diagnostics_.Add(origin, {}, "no value is given", "write key.path=value, as in nodes=2");
    return;
  }
  Diagnostics syntax;
  Node value = ParseYaml(std::string_view(assignment).substr(equals + 1), path, syntax);
  if (!syntax.empty() || std::ranges::count(path, '.') > kMaxDots) {
    diagnostics_.Add(origin, {}, "the value is not valid YAML, or the key is too deep",
                     "quote texts with special characters");
    return;
  }
  MarkAsSet(value, path);
  if (path.starts_with(kParameterPrefix) && value.is_scalar()) {
    AddParameter(root, path.substr(kParameterPrefix.size()), value);
    return;
  }
  Node* node = &root;
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t dot = std::min(path.find('.', start), path.size());
    const std::string here = start == 0 ? "" : path.substr(0, start - 1);
    node = Descend(*node, here, path.substr(start, dot - start), dot == path.size(), origin);
    if (node == nullptr) return;
    start = dot + 1;
  }
  *node = std::move(value);
}

void Sources::ExpandPreset(Node& parent, const std::string& key, FileKind kind,
                           const std::string& key_path) {
  Node* node = parent.Find(key);
  if (node == nullptr) return;
  const bool is_name = node->is_scalar();
  if (is_name) {
    Node preset = Node::Map(node->origin);
    preset.entries.push_back({"extends", *node, node->origin});
    *node = std::move(preset);
  }
  if (!node->is_map() || node->Find("extends") == nullptr) return;
  if (!Extend(*node, kind, is_name ? key_path : JoinPath(key_path, "extends"), {})) {
    *node = Node{};  // so that its keys are not missed as well
  }
}

void Sources::ExpandPresets(Node& root) {
  if (!root.is_map()) return;
  ExpandPreset(root, "cluster", FileKind::kCluster, "cluster");
  Node* modules = root.Find("modules");
  if (modules == nullptr || !modules->is_map()) return;
  for (Node::Entry& entry : modules->entries) {
    if (!entry.value.is_map()) continue;
    ExpandPreset(entry.value, "model", FileKind::kModel,
                 JoinPath(JoinPath("modules", entry.key), "model"));
  }
}

}  // namespace isthmus::scenarios::internal
