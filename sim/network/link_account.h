#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "plan/program/op.h"
#include "topology/route.h"

namespace isthmus::sim {

inline constexpr std::size_t kNumPurposes = static_cast<std::size_t>(plan::Purpose::kOptimizer) + 1;

/// What has crossed a link.
struct LinkAccount {
  std::array<double, kNumPurposes> bytes{};  // by plan::Purpose
  std::int64_t busy_ps = 0;                  // while any flow was on it
};

/// One link that a run used, and what crossed it.
struct LinkTraffic {
  topology::Link link;
  LinkAccount account;
};

}  // namespace isthmus::sim
