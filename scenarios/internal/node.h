#pragma once

#include <string>
#include <string_view>
#include <vector>

/// The tree of values that scenario files are read into, with the place of every value.
namespace isthmus::scenarios::internal {

// Where a value was written. A file by the label that messages show; `--set key` has no line.
struct Origin {
  enum class Kind { kNone, kFile, kSet, kDerived };
  Kind kind = Kind::kNone;
  std::string file;  // kSet: the key
  int line = 0;      // from 1
  int column = 0;

  bool known() const { return kind != Kind::kNone; }
  // "quickstart.yaml:12", "--set nodes", "derived", "default".
  std::string Text() const;
};

// A value of a file. Maps keep the order of their keys; no key occurs twice in a map.
struct Node {
  enum class Kind { kNull, kScalar, kList, kMap };
  struct Entry;

  Kind kind = Kind::kNull;
  std::string text;            // kScalar
  bool is_quoted = false;      // kScalar: quotes make it a text, whatever it looks like
  std::vector<Node> items;     // kList
  std::vector<Entry> entries;  // kMap
  Origin origin;

  bool is_null() const { return kind == Kind::kNull; }
  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_map() const { return kind == Kind::kMap; }

  static Node Scalar(std::string text, Origin origin = {});
  static Node Map(Origin origin = {});

  // The value of a key of a map; nothing for other kinds and unknown keys.
  const Node* Find(std::string_view key) const;
  Node* Find(std::string_view key);
  // The value of a key, made null if missing. Needs a map.
  Node& At(std::string_view key, const Origin& key_origin);
  void Erase(std::string_view key);
};

struct Node::Entry {
  std::string key;
  Node value;
  Origin origin;  // of the key
};

// What a kind is called in messages: "a map", "a list", "a single value", "nothing".
std::string_view KindText(Node::Kind kind);

// `over` on top of `base`: maps merge key by key, all else is replaced. Keys of `base` come first.
// A null in `over` takes the key away, so that its default holds again.
void MergeOver(Node& base, Node over);

// A dotted path: "modules.llm.layout.tp". An index of a list counts as a key: "edges.0.to".
std::string JoinPath(std::string_view path, std::string_view key);

// The node at a path, or its nearest ancestor that exists.
struct Place {
  const Node* node = nullptr;  // never null after Locate
  Origin key_origin;           // of the last key, if it was found in a map
  bool is_exact = false;
};
Place Locate(const Node& root, std::string_view path);

}  // namespace isthmus::scenarios::internal
