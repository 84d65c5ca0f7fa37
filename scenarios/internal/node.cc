#include "scenarios/internal/node.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace isthmus::scenarios::internal {
namespace {

// The item of a list that a key like "0" stands for.
const Node* ItemAt(const Node& list, std::string_view key) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
  if (error != std::errc() || end != key.data() + key.size()) return nullptr;
  return index < list.items.size() ? &list.items[index] : nullptr;
}

}  // namespace

std::string Origin::Text() const {
  switch (kind) {
    case Kind::kNone:
      return "default";
    case Kind::kFile:
      return fmt::format("{}:{}", file, line);
    case Kind::kSet:
      return "--set " + file;
    case Kind::kDerived:
      return "derived";
  }
  return {};
}

Node Node::Scalar(std::string text, Origin origin) {
  Node node;
  node.kind = Kind::kScalar;
  node.text = std::move(text);
  node.origin = std::move(origin);
  return node;
}

Node Node::Map(Origin origin) {
  Node node;
  node.kind = Kind::kMap;
  node.origin = std::move(origin);
  return node;
}

const Node* Node::Find(std::string_view key) const {
  const auto found = std::ranges::find(entries, key, &Entry::key);
  return found == entries.end() ? nullptr : &found->value;
}

Node* Node::Find(std::string_view key) {
  const auto found = std::ranges::find(entries, key, &Entry::key);
  return found == entries.end() ? nullptr : &found->value;
}

Node& Node::At(std::string_view key, const Origin& key_origin) {
  if (Node* found = Find(key)) return *found;
  entries.push_back({std::string(key), Node{}, key_origin});
  return entries.back().value;
}

void Node::Erase(std::string_view key) {
  std::erase_if(entries, [&](const Entry& entry) { return entry.key == key; });
}

std::string_view KindText(Node::Kind kind) {
  switch (kind) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kScalar:
      return "a single value";
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kMap:
      return "a map";
  }
  return {};
}

void MergeOver(Node& base, Node over) {
  if (!base.is_map() || !over.is_map()) {
    base = std::move(over);
    return;
  }
  base.origin = over.origin;
  for (Node::Entry& entry : over.entries) {
    if (entry.value.is_null()) {
      base.Erase(entry.key);
      continue;
    }
    Node& value = base.At(entry.key, entry.origin);
    MergeOver(value, std::move(entry.value));
    std::ranges::find(base.entries, entry.key, &Node::Entry::key)->origin = entry.origin;
  }
}

std::string JoinPath(std::string_view path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

Place Locate(const Node& root, std::string_view path) {
  Place place{&root, {}, path.empty()};
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    const std::string_view key = path.substr(0, dot);
    const bool is_last = dot == std::string_view::npos;
    path = is_last ? std::string_view() : path.substr(dot + 1);
    if (place.node->is_list()) {
      const Node* item = ItemAt(*place.node, key);
      if (item == nullptr) return place;
      place = {item, item->origin, is_last};
      continue;
    }
    const auto found = std::ranges::find(place.node->entries, key, &Node::Entry::key);
    if (found == place.node->entries.end()) return place;
    place = {&found->value, found->origin, is_last};
  }
  return place;
}

}  // namespace isthmus::scenarios::internal
