#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include "plan/program/op.h"
#include "topology/route.h"

namespace isthmus::sim {

inline constexpr std::size_t kNumPurposes = static_cast<std::size_t>(plan::Purpose::kOptimizer) + 1;

/// What has crossed a link.
struct LinkAccount {
  std::array<double, kNumPurposes> bytes{};  // of the first job, by plan::Purpose
  double other_bytes = 0;                    // of other jobs
  std::int64_t busy_ps = 0;                  // while any flow was on it

  double Sum() const { return std::accumulate(bytes.begin(), bytes.end(), other_bytes); }
};

/// One flow of the first job that is over: part of a message, a copy or a collective.
struct LinkFlow {
  std::uint32_t rank_class = 0;  // of a message the sender's, of a collective one member's
  std::uint32_t op = 0;
  std::uint32_t inner = 0;  // as in traces::Event: of a message 1 + its number in the op
  plan::Purpose purpose = plan::Purpose::kModel;
  std::span<const std::uint32_t> links;  // in order; into Outcome::links
  double bytes = 0;
  std::int64_t start_ps = 0;
  std::int64_t end_ps = 0;
  std::int64_t alone_ps = 0;  // how long it would have taken with its links to itself
};

/// One link that a run used, and what crossed it.
struct LinkTraffic {
  topology::Link link;
  LinkAccount account;
};

/// Why something crosses a link, as far as reports tell reasons apart.
struct LinkCause {
  std::uint8_t job = 0;  // 0: the one that is simulated; else 1 + of SimOptions::other_jobs
  plan::Purpose purpose = plan::Purpose::kModel;
  std::uint16_t module = 0;  // of the job's program
  plan::OpKind kind = plan::OpKind::kP2P;
  std::uint8_t detail = 0;  // plan::Op::detail
  friend auto operator<=>(const LinkCause&, const LinkCause&) = default;
};

/// Picoseconds summed over flows: more than the clock's range if each of many loses days.
__extension__ using SummedPicoseconds = __int128;

/// What flows of one cause lost to flows of another on a link.
struct LinkLoss {
  LinkCause victim;
  LinkCause culprit;
  std::uint32_t link = 0;       // into Outcome::links
  std::uint64_t num_flows = 0;  // of the victim, that lost something
  SummedPicoseconds lost_ps = 0;
  std::int64_t longest_ps = 0;  // of one of them
};

/// How the links of a run were loaded over its time, and who slowed whom.
struct LinkHistory {
  std::int64_t bin_ps = 1;
  std::size_t num_bins = 0;         // the last one may be cut short by the end of the run
  std::vector<std::int64_t> bytes;  // link by link, bin by bin
  std::uint64_t num_slow_flows = 0;
  SummedPicoseconds lost_ps = 0;  // what they took longer than alone
  std::vector<LinkLoss> losses;   // by victim, culprit and link; their lost_ps add up to the above

  std::span<const std::int64_t> bytes_of(std::size_t link) const {
    return std::span(bytes).subspan(link * num_bins, num_bins);
  }
};

/// Takes flows when they are over.
using LinkFlowPort = std::function<void(const LinkFlow&)>;

}  // namespace isthmus::sim
