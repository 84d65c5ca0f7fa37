#pragma once

#include <string>
#include <string_view>

#include "scenarios/internal/archive.h"
#include "scenarios/internal/node.h"

namespace isthmus::scenarios::internal {

// Turns a struct into a tree of its values, defaults included; keys without a value are left out.
//
// Use: Recorder recorder(node); Fields(recorder, spec); the tree is then in `node`, which must
// outlive the recorder. The struct is only read.
class Recorder : public Archive {
 public:
  // Which keys are recorded: all, or those that a file may leave out, for the tree of defaults; or
  // all and what counts where a key is left out, which a file need not say.
  enum class Keys { kAll, kOptional, kAllAndDefaults };
  explicit Recorder(Node& node, Keys keys = Keys::kAll) : node_(node), keys_(keys) {
    node_.kind = Node::Kind::kMap;
  }

  void Value(std::string_view key, Scalar scalar, Presence presence, std::string_view doc) override;
  void Values(std::string_view key, std::size_t size,
              const std::function<void(std::size_t)>& resize,
              const std::function<Scalar(std::size_t)>& item, std::string_view doc) override;
  void Struct(std::string_view key, const Body& body, bool* set, std::string_view doc) override;
  void StructOr(std::string_view key, Scalar scalar, bool is_struct, const Body& body,
                std::string_view doc) override;
  void Named(std::string_view key, const Items& items, std::string_view item_name,
             std::string_view doc) override;
  void List(std::string_view key, const Items& items, std::string_view doc) override;
  void NotBuilt(std::string_view, std::string_view) override {}

 private:
  Node& node_;
  Keys keys_;
};

// What `tree` says beyond `defaults`: values equal to their default are taken out, maps that get
// empty too. A key "*" of `defaults` stands for every key.
void PruneDefaults(Node& tree, const Node& defaults);

}  // namespace isthmus::scenarios::internal
