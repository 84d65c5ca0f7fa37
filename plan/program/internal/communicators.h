#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plan/program/program.h"

namespace isthmus::plan::internal {

/// Numbers the communicators of a program, so that all members of one say the same number.
///
/// Ranks name communicators by grid axes or by entries of their boundary tables; here each name
/// becomes an index from 0. Lifetime: refers to the program. Cost: O(ranks · groups of a rank), and
/// O(members) for each member of a boundary group.
class Communicators {
 public:
  /// Groups that can't be (entries that don't exist, a rank missing from its own group) are named
  /// in `problems`. Members that list a group in different orders get different numbers.
  Communicators(const Program& program, std::vector<std::string>& problems);

  /// Number of what `rank` calls `group` (an index into its Role::groups).
  std::uint32_t id(base::Rank rank, std::uint32_t group) const {
    return ids_[first_of_rank_[rank.index()] + group];
  }
  std::uint32_t size(std::uint32_t id) const { return sizes_[id]; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(sizes_.size()); }

 private:
  std::uint32_t Find(base::Rank rank, const GroupRef& group);
  std::uint32_t FindAxes(base::Rank rank, const GroupRef& group);
  std::uint32_t FindBoundary(base::Rank rank, const GroupRef& group);
  /// `num_groups` new numbers for groups of `size` ranks; returns the first.
  std::uint32_t Add(std::uint32_t num_groups, std::uint32_t size);

  const Program& program_;
  std::vector<std::string>& problems_;
  std::vector<std::size_t> first_of_rank_;
  std::vector<std::uint32_t> ids_;
  std::vector<std::uint32_t> sizes_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> first_of_axes_;  // kind, module, axes
  std::map<std::vector<std::uint32_t>, std::uint32_t> boundary_;       // edge, members
};

}  // namespace isthmus::plan::internal
