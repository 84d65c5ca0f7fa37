#pragma once

#include "profiles/profile.h"
#include "sim/cost/machine_models.h"
#include "sim/engine/engine.h"
#include "sim/engine/lower.h"
#include "sim/simulate.h"

namespace isthmus::sim {

/// What lowering needs of the machine. Lifetime: the models must outlive it.
CostModels CostsOf(const MachineModels& models, const profiles::Profile& profile);

/// How the engine of a lowered program runs on the machine.
EngineOptions OptionsOf(const MachineModels& models, const profiles::Profile& profile,
                        const SimOptions& options, const Lowered& lowered);

}  // namespace isthmus::sim
