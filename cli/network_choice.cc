#include "cli/network_choice.h"

#include <fmt/format.h>

#include "base/error.h"

namespace isthmus::cli {

sim::Network ParseNetwork(const std::string& name) {
  if (name == "nccl") return sim::Network::kNccl;
  if (name == "flow") return sim::Network::kFlow;
  throw base::Error(fmt::format("--network {}: no such model; allowed: nccl, flow", name));
}

}  // namespace isthmus::cli
