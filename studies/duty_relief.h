#pragma once

#include "plan/program/program.h"
#include "profiles/profile.h"
#include "sim/cost/duty_relief.h"
#include "studies/predict.h"

namespace isthmus::studies {

/// What the power balance of sim::RelieveClock says of a step that takes `step_time_s`: of the rank
/// whose kernels take longest, at the ratio of the type that its products are in.
sim::DutyRelief EstimateDutyRelief(const plan::Program& program, const profiles::Profile& profile,
                                   double step_time_s);

/// The profile with every `clock.*.ratio` raised to the balance of the simulated step: estimate and
/// simulation in turn until the ratio moves by less than 0.001, at most four times.
profiles::Profile WithRelievedClock(const StepSimulation& simulation);

}  // namespace isthmus::studies
