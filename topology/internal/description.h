#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "topology/cluster.h"

/// The parts of a cluster's description.
namespace isthmus::topology::internal {

inline std::string Numbered(std::string_view thing, int first, int count) {
  return count == 1 ? fmt::format("{} {}", thing, first)
                    : fmt::format("{}s {} to {}", thing, first, first + count - 1);
}

inline std::string Row(std::string_view key, std::string_view value) {
  constexpr std::size_t kWidth = 19;
  return fmt::format("  {:<{}}{}\n", key, std::max(kWidth, key.size() + 2), value);
}

/// Sources are numbered where they are first used and listed at the end.
class Sources {
 public:
  std::string Mark(const std::string& source) {
    const auto found = std::find(sources_.begin(), sources_.end(), source);
    const auto number = found - sources_.begin() + 1;
    if (found == sources_.end()) sources_.push_back(source);
    return fmt::format("[{}]", number);
  }

  std::string Figures(const Sourced<base::BytesPerSecond>& bandwidth,
                      const Sourced<base::Seconds>& latency) {
    const std::string mark = Mark(bandwidth.source);
    return fmt::format("{:>9} {:<5}{:>8} {}", base::FormatRate(bandwidth.value), mark,
                       base::FormatSeconds(latency.value), Mark(latency.source));
  }

  std::string List() const {
    std::string text = "\nsources (bandwidths are per direction)\n";
    for (std::size_t index = 0; index < sources_.size(); ++index) {
      text += fmt::format("  [{}] {}\n", index + 1, sources_[index]);
    }
    return text;
  }

 private:
  std::vector<std::string> sources_;
};

/// The fabric's figures, its tiers from the leaves up. Ends in a line break.
std::string DescribeFabric(const Cluster& cluster, Sources& sources);

}  // namespace isthmus::topology::internal
