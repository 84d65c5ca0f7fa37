#include "profiles/kernel_tables.h"

namespace isthmus::profiles {

std::string KernelTables(const Profile& profile) {
  for (const char* prefix : {"cpu", "gpu"}) {
    if (!profile.KeysUnder(std::string(prefix) + ".").empty()) return prefix;
  }
  return {};
}

}  // namespace isthmus::profiles
