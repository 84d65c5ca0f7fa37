#pragma once

#include "profiles/profile.h"

namespace isthmus::sim {

/// Power by what a GPU does, as shares of its limit, at the power limit.
struct PowerBalance {
  bool enabled = false;     ///< whether the clock of a simulation follows it
  double static_share = 0;  ///< of tensor kernels, whatever the clock
  double exponent = 0;      ///< of the clock in the rest of theirs
  double memory_share = 0;  ///< memory-bound kernels, and attention that doesn't throttle
  double idle_share = 0;    ///< communication, gaps and waits
};

/// `clock.duty_relief.*` of the profile. Throws base::Error if one is missing or not in [0, 1].
PowerBalance ReadPowerBalance(const profiles::Profile& profile);

/// Seconds of a step by what a GPU does in them.
struct Duty {
  double tensor_s = 0;
  double memory_s = 0;
  double idle_s = 0;
};

struct DutyRelief {
  double clock_ratio = 0;
  double step_time_s = 0;
};

/// The sustained clock of a step that doesn't keep the tensor cores busy all the time.
///
///     T_t·(r0/r)·(P_s + K·r^a) + T_m·P_m + T_i·P_i = P · (T_t·r0/r + T_m + T_i)
///
///     P_s + K·r0^a = P
///
/// r0: the ratio at full duty, which is the balance with T_m = T_i = 0; T_t, T_m, T_i: the step's
/// time in tensor kernels, memory-bound ones and idle, at r0; powers P_s static, P_m, P_i as shares
/// of the limit P. r is the ratio at which the mean power is the limit, at most 1 (burst); T_t
/// shrinks with it, the rest stays. Needs ratio in (0, 1] and seconds >= 0.
/// Source: `clock.duty_relief.*`, assumed. Pinned by tests/unit/sim/duty_relief_test.cc;
/// derivation: docs/models/clock.md.
DutyRelief RelieveClock(const Duty& duty, double ratio, const PowerBalance& balance);

}  // namespace isthmus::sim
