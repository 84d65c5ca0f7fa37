#include "backend/launch/gpu_sharing.h"

#include <unistd.h>

#include <array>
#include <fstream>
#include <map>

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

std::optional<std::pair<int, int>> FirstToShare(const std::vector<std::string>& gpus) {
  std::map<std::string, int> first;
  for (std::size_t rank = 0; rank < gpus.size(); ++rank) {
    const auto [found, is_new] = first.emplace(gpus[rank], static_cast<int>(rank));
    if (!is_new) return std::pair{found->second, static_cast<int>(rank)};
  }
  return std::nullopt;
}

}  // namespace isthmus::backend
