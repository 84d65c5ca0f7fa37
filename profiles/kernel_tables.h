#pragma once

#include <string>

#include "profiles/profile.h"

namespace isthmus::profiles {

/// The prefix of a profile's tables of kernels, as `isthmus calibrate` measures them: "cpu" of a
/// core, "gpu" of a GPU. Empty where its kernels are formulas fitted to others' rows, or none.
std::string KernelTables(const Profile& profile);

}  // namespace isthmus::profiles
