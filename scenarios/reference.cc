#include "scenarios/reference.h"

#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "scenarios/internal/archive.h"
#include "scenarios/internal/fields.h"

namespace isthmus::scenarios {
namespace {

using namespace internal;

// Prints one row per key of a struct. Structs inside are left to their own tables where they have
// one; else their keys follow as `outer.inner`.
class Describer : public Archive {
 public:
  explicit Describer(std::string prefix = {}) : prefix_(std::move(prefix)) {}

  std::string Take() && { return std::move(rows_); }

  void Value(std::string_view key, Scalar scalar, Presence presence,
             std::string_view doc) override {
    const std::string fallback = scalar.print().value_or("");
    Row(key, scalar.type, presence == Presence::kRequired ? "needed" : fallback, doc);
  }
  void Values(std::string_view key, std::size_t, const std::function<void(std::size_t)>&,
              const std::function<Scalar(std::size_t)>&, std::string_view doc) override {
    Row(key, "list", "", doc);
  }
  void Struct(std::string_view key, const Body& body, bool*, std::string_view doc) override {
    Row(key, "map", "", doc);
    Inner(key, body);
  }
  void StructOr(std::string_view key, Scalar scalar, bool, const Body& body,
                std::string_view doc) override {
    const char* list = scalar.list_key.empty() ? "" : ", a list";
    Row(key, fmt::format("{}{}, or a map", scalar.type, list), "", doc);
    // Figures have `value` and `source` all alike: said once, above the tables.
    const bool is_figure = scalar.type.starts_with("bandwidth") ||
                           scalar.type.starts_with("time") || scalar.type.starts_with("integer") ||
                           scalar.type.starts_with("number");
    const bool inner = !is_figure || !scalar.list_key.empty();
    if (inner && key != "model" && key != "cluster") Inner(key, body);
  }
  void Named(std::string_view key, const Items& items, std::string_view item_name,
             std::string_view doc) override {
    Row(key, fmt::format("map of {}s by name", item_name), "", doc);
    if (key != "modules") Inner(fmt::format("{}.NAME", key), items.visit_default);
  }
  void List(std::string_view key, const Items& items, std::string_view doc) override {
    Row(key, "list of maps", "", doc);
    Inner(fmt::format("{}.0", key), items.visit_default);
  }
  void NotBuilt(std::string_view key, std::string_view doc) override {
    Row(key, "not built yet", "", doc);
  }

 private:
  void Row(std::string_view key, std::string_view type, std::string_view fallback,
           std::string_view doc) {
    rows_ += fmt::format("| `{}{}` | {} | {} | {} |\n", prefix_, key, type, fallback, doc);
  }
  void Inner(std::string_view key, const Body& body) {
    Describer inner(fmt::format("{}{}.", prefix_, key));
    body(inner);
    rows_ += std::move(inner).Take();
  }

  std::string prefix_;
  std::string rows_;
};

template <typename T>
std::string Table(std::string_view title) {
  T fresh{};
  Describer describer;
  Fields(describer, fresh);
  return fmt::format(
      "### {}\n\n| key | type | default | meaning |\n| --- | --- | --- | --- |\n{}\n", title,
      std::move(describer).Take());
}

}  // namespace

std::string DescribeKeys() {
  return Table<ScenarioSpec>("A scenario") + Table<ModuleSpec>("A module: `modules.NAME`") +
         Table<ModelSpec>("A model: `modules.NAME.model`, files of `scenarios/models/`") +
         Table<topology::ClusterSpec>("A cluster: `cluster`, files of `scenarios/clusters/`");
}

}  // namespace isthmus::scenarios
