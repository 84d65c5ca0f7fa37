#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/internal/archive.h"
#include "scenarios/internal/diagnostics.h"
#include "scenarios/internal/node.h"

namespace isthmus::scenarios::internal {

// Fills a struct from a map of a file. Every mistake (unknown key, wrong type, value out of range,
// missing key) goes to the diagnostics and reading goes on; the struct then keeps its default.
//
// Use: Reader reader(root, node, path, diagnostics); Fields(reader, spec); reader.Finish();
// Lifetime: the nodes and diagnostics must outlive it.
class Reader : public Archive {
 public:
  // `node` is what to read, at `path` from the file's root; another kind than a map is a mistake.
  Reader(const Node& node, std::string path, Diagnostics& diagnostics);

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
  void NotBuilt(std::string_view key, std::string_view doc) override;

  // Complains about the keys that no field asked for.
  void Finish();

 private:
  // The value of a key, which counts as known from now on; nothing if absent or null.
  const Node* Take(std::string_view key);
  void ReadScalar(const Node& node, const std::string& path, const Scalar& scalar);
  void Expect(const Node& node, const std::string& path, std::string_view wanted);

  const Node& node_;
  std::string path_;
  Diagnostics& diagnostics_;
  std::vector<std::string> known_;
  std::vector<std::string> not_built_;
};

}  // namespace isthmus::scenarios::internal
