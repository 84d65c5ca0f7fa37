#include "scenarios/internal/reader.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace isthmus::scenarios::internal {

Reader::Reader(const Node& node, std::string path, Diagnostics& diagnostics)
    : node_(node), path_(std::move(path)), diagnostics_(diagnostics) {
  if (!node.is_map() && !node.is_null()) Expect(node, path_, "a map of keys");
}

const Node* Reader::Take(std::string_view key) {
  known_.emplace_back(key);
  const Node* value = node_.Find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

void Reader::Expect(const Node& node, const std::string& path, std::string_view wanted) {
  std::string found(KindText(node.kind));
  if (node.is_scalar()) found = fmt::format("\"{}\"", node.text);
  diagnostics_.Add(node.origin, path, fmt::format("found {}, expected {}", found, wanted));
}

void Reader::ReadScalar(const Node& node, const std::string& path, const Scalar& scalar) {
  if (!node.is_scalar()) {
    diagnostics_.Add(node.origin, path,
                     fmt::format("found {}, expected a single value", KindText(node.kind)),
                     fmt::format("type: {}", scalar.type));
    return;
  }
  Failure failure = scalar.parse(node.text, node.is_quoted);
  if (failure.failed()) {
    diagnostics_.Add(node.origin, path, failure.message, std::move(failure.hint));
  }
}

void Reader::Value(std::string_view key, Scalar scalar, Presence presence, std::string_view) {
  const std::string path = JoinPath(path_, key);
  if (const Node* value = Take(key)) {
    ReadScalar(*value, path, scalar);
  } else if (presence == Presence::kRequired && node_.is_map()) {
    diagnostics_.Add(node_.origin, path, "is missing", fmt::format("type: {}", scalar.type));
  }
}

void Reader::Values(std::string_view key, std::size_t,
                    const std::function<void(std::size_t)>& resize,
                    const std::function<Scalar(std::size_t)>& item, std::string_view) {
  const Node* list = Take(key);
  if (list == nullptr) return;
  const std::string path = JoinPath(path_, key);
  if (!list->is_list()) {
    Expect(*list, path, "a list");
    return;
  }
  resize(list->items.size());
  for (std::size_t index = 0; index < list->items.size(); ++index) {
    ReadScalar(list->items[index], JoinPath(path, fmt::format("{}", index)), item(index));
  }
}

void Reader::Struct(std::string_view key, const Body& body, bool* set, std::string_view) {
  const Node* value = Take(key);
  if (set != nullptr) *set = value != nullptr;
  if (value == nullptr && (set != nullptr || !node_.is_map())) return;
  // Read even when absent: the keys it must have are then reported as missing.
  Node absent = Node::Map(node_.origin);
  Reader reader(value != nullptr ? *value : absent, JoinPath(path_, key), diagnostics_);
  body(reader);
  reader.Finish();
}

void Reader::StructOr(std::string_view key, Scalar scalar, bool, const Body& body,
                      std::string_view) {
  const Node* value = Take(key);
  if (value == nullptr) return;
  const std::string path = JoinPath(path_, key);
  Node map = Node::Map(value->origin);
  if (value->is_list() && !scalar.list_key.empty()) {
    map.At(scalar.list_key, value->origin) = *value;
    value = &map;
  }
  if (!value->is_map()) {
    ReadScalar(*value, path, scalar);
    return;
  }
  Reader reader(*value, path, diagnostics_);
  body(reader);
  reader.Finish();
}

void Reader::Named(std::string_view key, const Items& items, std::string_view item_name,
                   std::string_view) {
  const Node* value = Take(key);
  if (value == nullptr) return;
  const std::string path = JoinPath(path_, key);
  if (!value->is_map()) {
    Expect(*value, path, fmt::format("a map of {}s by name", item_name));
    return;
  }
  for (std::size_t index = 0; index < value->entries.size(); ++index) {
    const Node::Entry& entry = value->entries[index];
    items.add(entry.key);
    Reader reader(entry.value, JoinPath(path, entry.key), diagnostics_);
    items.visit(index, reader);
    reader.Finish();
  }
}

void Reader::List(std::string_view key, const Items& items, std::string_view) {
  const Node* value = Take(key);
  if (value == nullptr) return;
  const std::string path = JoinPath(path_, key);
  if (!value->is_list()) {
    Expect(*value, path, "a list");
    return;
  }
  for (std::size_t index = 0; index < value->items.size(); ++index) {
    items.add({});
    Reader reader(value->items[index], JoinPath(path, fmt::format("{}", index)), diagnostics_);
    items.visit(index, reader);
    reader.Finish();
  }
}

void Reader::NotBuilt(std::string_view key, std::string_view doc) {
  not_built_.emplace_back(key);
  const Node* value = node_.Find(key);
  if (value == nullptr || value->is_null()) return;
  diagnostics_.Add(value->origin, JoinPath(path_, key),
                   fmt::format("is known but not built yet: {}", doc));
}

void Reader::Finish() {
  for (const Node::Entry& entry : node_.entries) {
    const auto is_key = [&](const std::string& known) { return known == entry.key; };
    if (std::ranges::any_of(known_, is_key) || std::ranges::any_of(not_built_, is_key)) continue;
    diagnostics_.Add(entry.origin, JoinPath(path_, entry.key), "unknown key",
                     NamesHint(entry.key, known_));
  }
}

}  // namespace isthmus::scenarios::internal
