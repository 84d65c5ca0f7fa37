#include "plan/program/internal/communicators.h"

#include <algorithm>

#include <fmt/format.h>

namespace isthmus::plan::internal {

Communicators::Communicators(const Program& program, std::vector<std::string>& problems)
    : program_(program), problems_(problems) {
  for (int index = 0; index < program.num_ranks; ++index) {
    const base::Rank rank{index};
    first_of_rank_.push_back(ids_.size());
    for (const GroupRef& group : program.role(rank).groups) ids_.push_back(Find(rank, group));
  }
}

std::uint32_t Communicators::Add(std::uint32_t num_groups, std::uint32_t size) {
  const std::uint32_t first = count();
  sizes_.insert(sizes_.end(), num_groups, size);
  return first;
}

std::uint32_t Communicators::Find(base::Rank rank, const GroupRef& group) {
  if (group.kind == GroupRef::Kind::kBoundary) return FindBoundary(rank, group);
  if (group.kind == GroupRef::Kind::kWorld) {
    const auto [at, is_new] =
        first_of_axes_.try_emplace({static_cast<std::uint32_t>(group.kind)}, 0);
    if (is_new) at->second = Add(1, static_cast<std::uint32_t>(program_.num_ranks));
    return at->second;
  }
  return FindAxes(rank, group);
}

std::uint32_t Communicators::FindAxes(base::Rank rank, const GroupRef& group) {
  const bool embedding = group.kind == GroupRef::Kind::kEmbedding;
  const AxisSet axes = embedding ? kPp : group.axes;
  if (group.module >= program_.modules.size() ||
      !program_.modules[group.module].grid.contains(rank)) {
    problems_.push_back(fmt::format("rank {} is not in module {} of its group over {}",
                                    rank.value(), group.module, ToText(axes)));
    return Add(1, 1);
  }
  const Grid& grid = program_.modules[group.module].grid;
  const auto size = static_cast<std::uint32_t>(embedding ? 2 : grid.size(axes));
  const auto [at, is_new] = first_of_axes_.try_emplace(
      {static_cast<std::uint32_t>(group.kind), group.module, axes.bits()}, 0);
  if (is_new) {
    at->second = Add(static_cast<std::uint32_t>(grid.num_ranks() / grid.size(axes)), size);
  }
  return at->second + static_cast<std::uint32_t>(grid.GroupIndex(rank, axes));
}

std::uint32_t Communicators::FindBoundary(base::Rank rank, const GroupRef& group) {
  const bool exists =
      group.edge < program_.boundaries.size() &&
      rank.index() < program_.boundaries[group.edge].ranks.size() &&
      group.index < program_.boundaries[group.edge].ranks[rank.index()].groups.size();
  if (!exists) {
    problems_.push_back(
        fmt::format("rank {} has no group {} on edge {}", rank.value(), group.index, group.edge));
    return Add(1, 1);
  }
  const auto& members = program_.boundaries[group.edge].ranks[rank.index()].groups[group.index];
  if (std::find(members.begin(), members.end(), rank) == members.end()) {
    problems_.push_back(fmt::format("rank {} is no member of its group {} on edge {}", rank.value(),
                                    group.index, group.edge));
  }
  std::vector<std::uint32_t> key{group.edge};
  for (const base::Rank member : members) key.push_back(static_cast<std::uint32_t>(member.value()));
  const auto [at, is_new] = boundary_.try_emplace(std::move(key), 0);
  if (is_new) at->second = Add(1, static_cast<std::uint32_t>(members.size()));
  return at->second;
}

}  // namespace isthmus::plan::internal
