#pragma once

#include <string>
#include <vector>

/// Which ranks of a job compute on one GPU. All ranks must come to the same answer, since it
/// decides how they talk: it is computed from what all of them say, never from what one sees.
namespace isthmus::backend {

/// What tells this machine from others, and one boot of it from the next.
std::string HostIdentity();

/// A GPU among those of all machines, from the number that its driver gives it.
std::string GpuIdentity(const std::string& host, const std::string& uuid);

/// Whether two ranks have one GPU. `gpus` are identities by rank.
bool AnyIsShared(std::vector<std::string> gpus);

}  // namespace isthmus::backend
