#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// The compressed lists that Slurm writes into environment variables.
namespace isthmus::backend::internal {

// The first host of a node list: "gpu-[003-007,12],login1" gives "gpu-003". Nothing if the list is
// empty or its brackets don't close.
std::optional<std::string> FirstHost(std::string_view node_list);

// Tasks of the node with index `node` in a list as "8(x3),4": nothing if it has no such node or is
// malformed.
std::optional<std::int64_t> TasksOfNode(std::string_view tasks_per_node, std::int64_t node);

}  // namespace isthmus::backend::internal
