#include "backend/fake/fabric.h"

#include "plan/program/names.h"

namespace isthmus::backend {

Channel& Fabric::Between(base::Rank from, base::Rank to) {
  const std::lock_guard lock(mutex_);
  return channels_.try_emplace({from, to}, from, to, clock_).first->second;
}

Fabric::GroupKey Fabric::KeyOf(const plan::GroupRef& group, const std::vector<base::Rank>& members,
                               plan::OpKind meets) {
  using Kind = plan::GroupRef::Kind;
  GroupKey key{static_cast<std::int32_t>(meets), static_cast<std::int32_t>(group.kind)};
  switch (group.kind) {
    case Kind::kAxes:
    case Kind::kEmbedding:
      key.insert(key.end(), {group.module, group.axes.bits(), members.front().value()});
      break;
    case Kind::kBoundary:
      // Its index differs from rank to rank, and two groups of an edge may share a first member.
      key.push_back(group.edge);
      for (const base::Rank member : members) key.push_back(member.value());
      break;
    case Kind::kWorld:
      break;
  }
  return key;
}

Communicator& Fabric::Join(base::Rank rank, const plan::GroupRef& group, plan::OpKind meets) {
  const std::vector<base::Rank> members = program_.Members(rank, group);
  const std::lock_guard lock(mutex_);
  const auto at = communicators_.try_emplace(
      KeyOf(group, members, meets), plan::SharedGroupName(program_, group), meets, members, clock_);
  at.first->second.Join(rank, members);
  return at.first->second;
}

std::vector<ChannelCount> Fabric::CountChannels() const {
  const std::lock_guard lock(mutex_);
  std::vector<ChannelCount> counts;
  for (const auto& [ends, channel] : channels_) {
    ChannelCount count{.from = ends.first, .to = ends.second, .messages = channel.messages()};
    if (!count.messages.empty()) counts.push_back(std::move(count));
  }
  return counts;
}

std::vector<GroupCount> Fabric::CountGroups() const {
  const std::lock_guard lock(mutex_);
  std::vector<GroupCount> counts;
  for (const auto& [key, communicator] : communicators_) {
    GroupCount& count = counts.emplace_back();
    count.name = communicator.name();
    count.compute = communicator.meets() == plan::OpKind::kCompute;
    count.members = communicator.members();
    count.joined = communicator.joined();
    count.num_meetings = communicator.num_meetings();
    if (count.compute) continue;
    for (const auto& [kind, bytes] : communicator.bytes_by_kind()) {
      count.bytes[static_cast<plan::CollectiveKind>(kind)] = bytes;
    }
  }
  return counts;
}

}  // namespace isthmus::backend
