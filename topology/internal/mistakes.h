#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "topology/check_spec.h"

namespace isthmus::topology::internal {

/// The mistakes of a spec that were found so far.
class Mistakes {
 public:
  void Add(std::string path, std::string what, std::string hint) {
    found_.push_back({std::move(path), std::move(what), std::move(hint)});
  }

  /// Whether nothing was given where something has to be.
  template <typename T>
  bool IsMissing(const std::string& path, const Sourced<T>& figure) {
    if (!(figure == Sourced<T>{})) return false;
    Add(path, "is missing", "give it, with a source if there is one: {value: …, source: …}");
    return true;
  }

  void CheckPositive(const std::string& path, const Sourced<base::BytesPerSecond>& figure) {
    constexpr double kLeast = 1e3;  // B/s: what is slower makes steps of years
    if (IsMissing(path, figure)) return;
    const double value = figure.value.value();
    if (!std::isfinite(value) || value < kLeast) {
      Add(path, fmt::format("{} B/s is not a bandwidth", value), "give it as in 450 GB/s");
    }
    CheckSource(path, figure.source);
  }

  void CheckLatency(const std::string& path, const Sourced<base::Seconds>& figure) {
    if (IsMissing(path, figure)) return;
    const double value = figure.value.value();
    if (!(value >= 0 && value <= 1)) {
      Add(path, fmt::format("{} s is not the latency of a link", value), "give it as in 0.5 us");
    }
    CheckSource(path, figure.source);
  }

  void CheckSource(const std::string& path, const std::string& source) {
    if (source.empty()) {
      Add(path, "has no source", "name the data sheet or measurement, or say \"assumed: why\"");
    }
  }

  std::vector<SpecMistake> Take() && { return std::move(found_); }

 private:
  std::vector<SpecMistake> found_;
};

inline std::string PathOf(const NodeGroup& group, const char* key) {
  return fmt::format("node_groups.{}.{}", group.name, key);
}

}  // namespace isthmus::topology::internal
