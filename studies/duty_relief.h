#pragma once

#include <functional>

#include "plan/program/program.h"
#include "profiles/profile.h"
#include "sim/cost/duty_relief.h"

namespace isthmus::studies {

/// Whether the profile prices kernels and knows a power balance.
bool HasPowerBalance(const profiles::Profile& profile);
/// Whether it also asks for simulations to follow it (`clock.duty_relief.enabled`).
bool FollowsPowerBalance(const profiles::Profile& profile);

/// What the power balance of sim::RelieveClock says of a step that takes `step_time_s` with
/// `simulated`: of the rank whose kernels take longest, at the ratio of the type that its products
/// are in. `full_duty` is the profile before any relief, the same one where none was applied; the
/// estimate for a profile of RelievedProfile() is the ratio that it already has, within 0.001.
sim::DutyRelief EstimateDutyRelief(const plan::Program& program, const profiles::Profile& full_duty,
                                   const profiles::Profile& simulated, double step_time_s);

/// The profile with every `clock.*.ratio` (strict values too) raised to the balance of the
/// simulated step: estimate and simulation in turn until the ratio moves by less than 0.001, at
/// most eight times. `step_time_s` simulates a whole step with a profile.
profiles::Profile RelievedProfile(
    const plan::Program& program, const profiles::Profile& full_duty,
    const std::function<double(const profiles::Profile&)>& step_time_s);

}  // namespace isthmus::studies
