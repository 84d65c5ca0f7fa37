#include "scenarios/internal/recorder.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "scenarios/internal/yaml_text.h"

namespace isthmus::scenarios::internal {
namespace {

bool SameTree(const Node& a, const Node& b) {
  if (a.kind != b.kind || a.text != b.text || a.items.size() != b.items.size() ||
      a.entries.size() != b.entries.size()) {
    return false;
  }
  for (std::size_t index = 0; index < a.items.size(); ++index) {
    if (!SameTree(a.items[index], b.items[index])) return false;
  }
  for (std::size_t index = 0; index < a.entries.size(); ++index) {
    if (a.entries[index].key != b.entries[index].key) return false;
    if (!SameTree(a.entries[index].value, b.entries[index].value)) return false;
  }
  return true;
}

Node ScalarNode(const Scalar& scalar, const std::string& text) {
  Node node = Node::Scalar(text);
  node.is_quoted = scalar.is_text;
  return node;
}

}  // namespace

void Recorder::Value(std::string_view key, Scalar scalar, Presence presence, std::string_view) {
  if (keys_ == Keys::kOptional && presence == Presence::kRequired) return;
  auto text = scalar.print();
  if (!text && keys_ == Keys::kAllAndDefaults && scalar.print_default)
    text = scalar.print_default();
  if (text) node_.At(key, {}) = ScalarNode(scalar, *text);
}

void Recorder::Values(std::string_view key, std::size_t size,
                      const std::function<void(std::size_t)>&,
                      const std::function<Scalar(std::size_t)>& item, std::string_view) {
  if (size == 0) return;
  Node list;
  list.kind = Node::Kind::kList;
  for (std::size_t index = 0; index < size; ++index) {
    const Scalar scalar = item(index);
    list.items.push_back(ScalarNode(scalar, scalar.print().value_or("")));
  }
  node_.At(key, {}) = std::move(list);
}

void Recorder::Struct(std::string_view key, const Body& body, bool* set, std::string_view) {
  if (set != nullptr && !*set) return;
  Node inner;
  Recorder recorder(inner, keys_);
  body(recorder);
  node_.At(key, {}) = std::move(inner);
}

void Recorder::StructOr(std::string_view key, Scalar scalar, bool is_struct, const Body& body,
                        std::string_view doc) {
  if (is_struct) {
    Struct(key, body, nullptr, doc);
  } else {
    Value(key, std::move(scalar), Presence::kOptional, doc);
  }
}

void Recorder::Named(std::string_view key, const Items& items, std::string_view, std::string_view) {
  if (items.names.empty()) return;
  Node map = Node::Map();
  for (std::size_t index = 0; index < items.names.size(); ++index) {
    Recorder recorder(map.At(items.names[index], {}), keys_);
    items.visit(index, recorder);
  }
  node_.At(key, {}) = std::move(map);
}

void Recorder::List(std::string_view key, const Items& items, std::string_view) {
  if (items.names.empty()) return;
  Node list;
  list.kind = Node::Kind::kList;
  for (std::size_t index = 0; index < items.names.size(); ++index) {
    list.items.emplace_back();
    Recorder recorder(list.items.back(), keys_);
    items.visit(index, recorder);
  }
  node_.At(key, {}) = std::move(list);
}

void PruneDefaults(Node& tree, const Node& defaults) {
  if (!tree.is_map()) return;
  const Node* any = defaults.Find("*");
  std::erase_if(tree.entries, [&](Node::Entry& entry) {
    const Node* fallback = defaults.Find(entry.key);
    if (fallback == nullptr) fallback = any;
    if (fallback == nullptr) return false;
    if (fallback != any && SameTree(entry.value, *fallback)) return true;
    if (!entry.value.is_map() || !fallback->is_map()) return false;
    PruneDefaults(entry.value, *fallback);
    return entry.value.entries.empty() && fallback != any;
  });
}

}  // namespace isthmus::scenarios::internal
