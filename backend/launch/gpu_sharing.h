#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Which ranks of a job compute on one GPU. All ranks must come to the same answer, since it
/// decides how they talk: it is computed from what all of them say, never from what one sees.
namespace isthmus::backend {

/// What tells this machine from others, and one boot of it from the next.
std::string HostIdentity();

/// A GPU among those of all machines, from the number that its driver gives it.
std::string GpuIdentity(const std::string& host, const std::string& uuid);

/// The first rank that has the GPU of one before it, with that one: {earlier, later}. `gpus` are
/// identities by rank. Nothing: each rank has a GPU of its own.
std::optional<std::pair<int, int>> FirstToShare(const std::vector<std::string>& gpus);

}  // namespace isthmus::backend
