#pragma once

#include "base/units.h"

namespace isthmus::cli {

/// Cores that threads of this machine run on, at least 1.
int NumCores();

/// Main memory of this machine, swap not counted. Throws base::IoError.
base::Bytes MachineMemory();

}  // namespace isthmus::cli
