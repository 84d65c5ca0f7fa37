#pragma once

#include <string>

#include "sim/simulate.h"

namespace isthmus::cli {

/// What `--network` names: nccl or flow. Throws base::Error for anything else.
sim::Network ParseNetwork(const std::string& name);

}  // namespace isthmus::cli
