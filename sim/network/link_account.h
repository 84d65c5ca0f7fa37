#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "plan/program/op.h"
#include "topology/route.h"

namespace isthmus::sim {

inline constexpr std::size_t kNumPurposes = static_cast<std::size_t>(plan::Purpose::kOptimizer) + 1;

/// What has crossed a link.
struct LinkAccount {
  std::array<double, kNumPurposes> bytes{};  // by plan::Purpose
  std::int64_t busy_ps = 0;                  // while any flow was on it
};

/// One flow that is over: part of a message, a copy or a collective.
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

/// Takes flows when they are over.
using LinkFlowPort = std::function<void(const LinkFlow&)>;

}  // namespace isthmus::sim
