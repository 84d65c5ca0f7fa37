#pragma once

#include "base/units.h"

namespace isthmus::cli {

/// Main memory of this machine, swap not counted. Throws base::IoError.
base::Bytes MachineMemory();

}  // namespace isthmus::cli
