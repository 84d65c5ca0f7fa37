#include "backend/launch/gpu_sharing.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

namespace isthmus::backend {

std::string HostIdentity() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  if (std::getline(file, text) && !text.empty()) return text;
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string GpuIdentity(const std::string& host, const std::string& uuid) {
  return host + " " + uuid;
}

bool AnyIsShared(std::vector<std::string> gpus) {
  std::ranges::sort(gpus);
  return std::ranges::adjacent_find(gpus) != gpus.end();
}

}  // namespace isthmus::backend
