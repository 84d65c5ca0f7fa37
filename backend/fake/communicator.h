#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backend/fake/mailbox.h"
#include "backend/fake/run_clock.h"
#include "base/ids.h"
#include "base/units.h"
#include "plan/program/op.h"

namespace isthmus::backend {

/// The ranks that meet for collectives (or for Compute ops with inner collectives). A meeting is
/// over when all members have come; then the next begins.
///
/// Coming never blocks: members learn of the end by their mailboxes.
/// Thread-safe. Lifetime: mailboxes and clock must outlive it.
class Communicator {
 public:
  struct Arrival {
    base::Rank rank{0};
    std::uint8_t kind = 0;  // CollectiveKind or Action: members must agree on it …
    base::Bytes bytes{0};   // … and on this (0 for Compute)
    Mailbox* mailbox = nullptr;
    std::uint32_t op = 0;  // comes back in the Completion
  };

  /// `meets`: the kind of op that members come with, kCollective or kCompute.
  Communicator(std::string name, plan::OpKind meets, std::vector<base::Rank> members,
               const RunClock& clock)
      : name_(std::move(name)), meets_(meets), members_(std::move(members)), clock_(clock) {}

  /// A member's thread takes part from now on. Throws base::Error if `rank` isn't a member or takes
  /// the communicator for one of other members.
  void Join(base::Rank rank, const std::vector<base::Rank>& members);
  /// Throws base::Error if the members that are there came for something else, or the rank is there
  /// already. Needs that the rank joined.
  void Arrive(const Arrival& arrival);

  const std::string& name() const { return name_; }
  plan::OpKind meets() const { return meets_; }
  const std::vector<base::Rank>& members() const { return members_; }
  std::vector<base::Rank> joined() const;  // ascending
  std::int64_t num_meetings() const;
  std::map<std::uint8_t, base::Bytes> bytes_by_kind() const;

 private:
  std::string Describe(const Arrival& arrival) const;

  std::string name_;
  plan::OpKind meets_;
  std::vector<base::Rank> members_;
  const RunClock& clock_;
  mutable std::mutex mutex_;
  std::set<base::Rank> joined_;
  std::vector<Arrival> there_;  // of the meeting that is not over yet
  std::int64_t num_meetings_ = 0;
  std::map<std::uint8_t, base::Bytes> bytes_by_kind_;
};

}  // namespace isthmus::backend
