#pragma once

#include <span>
#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "base/ids.h"

namespace isthmus::sim {

/// What `find` returns; where the cluster has no way, the error says what for: `what()`.
template <typename Find, typename What>
auto NeededBy(Find find, What what) {
  try {
    return find();
  } catch (const base::Error& error) {
    throw base::Error(fmt::format("{}\n  needed by: {}", error.what(), what()));
  }
}

// The usual whats.
inline std::string CollectivesOf(std::span<const base::Rank> ranks) {
  return fmt::format("collectives of ranks {} to {} ({} of them)", ranks.front().value(),
                     ranks.back().value(), ranks.size());
}
inline std::string MessagesBetween(base::Rank from, base::Rank to) {
  return fmt::format("messages from rank {} to rank {}", from.value(), to.value());
}
inline std::string CopiesOf(base::Rank rank) {
  return fmt::format("copies between rank {} and its host", rank.value());
}

}  // namespace isthmus::sim
