#include "backend/fake/communicator.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "base/error.h"
#include "plan/program/names.h"

namespace isthmus::backend {

void Communicator::Join(base::Rank rank, const std::vector<base::Rank>& members) {
  const std::lock_guard lock(mutex_);
  if (members != members_) {
    throw base::Error(fmt::format(
        "group {}: rank {} counts other ranks among its members than rank {} does", name_,
        rank.value(), joined_.empty() ? members_.front().value() : joined_.begin()->value()));
  }
  if (std::find(members_.begin(), members_.end(), rank) == members_.end()) {
    throw base::Error(fmt::format("group {}: rank {} is no member", name_, rank.value()));
  }
  joined_.insert(rank);
}

void Communicator::Arrive(const Arrival& arrival) {
  const std::lock_guard lock(mutex_);
  ISTHMUS_CHECK(joined_.contains(arrival.rank), "rank {} hasn't joined {}", arrival.rank.value(),
                name_);
  for (const Arrival& other : there_) {
    if (other.rank == arrival.rank) {
      throw base::Error(
          fmt::format("group {}: rank {} comes with op {} while its op {} is not over", name_,
                      arrival.rank.value(), arrival.op, other.op));
    }
  }
  if (!there_.empty() &&
      (there_.front().kind != arrival.kind || there_.front().bytes != arrival.bytes)) {
    throw base::Error(
        fmt::format("group {}: {} meets {}", name_, Describe(arrival), Describe(there_.front())));
  }
  there_.push_back(arrival);
  if (there_.size() < members_.size()) return;
  ++num_meetings_;
  base::Bytes& total = bytes_by_kind_[arrival.kind];
  total = total + arrival.bytes;
  const std::int64_t now = clock_.now_ps();
  for (const Arrival& each : there_) {
    each.mailbox->Deliver({.kind = Completion::Kind::kMeeting, .index = each.op, .start_ps = now});
  }
  there_.clear();
}

std::string Communicator::Describe(const Arrival& arrival) const {
  return fmt::format("op {} of rank {} ({}, {} bytes)", arrival.op, arrival.rank.value(),
                     plan::ActionName({.kind = meets_, .detail = arrival.kind}),
                     arrival.bytes.value());
}

std::vector<base::Rank> Communicator::joined() const {
  const std::lock_guard lock(mutex_);
  return {joined_.begin(), joined_.end()};
}

std::int64_t Communicator::num_meetings() const {
  const std::lock_guard lock(mutex_);
  return num_meetings_;
}

std::map<std::uint8_t, base::Bytes> Communicator::bytes_by_kind() const {
  const std::lock_guard lock(mutex_);
  return bytes_by_kind_;
}

}  // namespace isthmus::backend
