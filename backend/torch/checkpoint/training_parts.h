#pragma once

#include <vector>

#include "backend/torch/checkpoint/stored_part.h"
#include "backend/torch/optimizer/module_parameters.h"

namespace isthmus::backend {

/// What a rank updates of a module: master weights and both moments of the trained elements that it
/// owns. Views: writing them restores the optimizer's state. Lifetime: that of `parameters`.
std::vector<StoredPart> OwnedParts(ModuleParameters& parameters);

/// Reduced gradients of the same elements, after the step that scaled them.
std::vector<StoredPart> OwnedGradients(ModuleParameters& parameters);

/// All working weights of a module on the rank, frozen ones too.
std::vector<StoredPart> WorkingWeights(ModuleParameters& parameters);
/// The frozen ones alone.
std::vector<StoredPart> FrozenWeights(ModuleParameters& parameters);

}  // namespace isthmus::backend
