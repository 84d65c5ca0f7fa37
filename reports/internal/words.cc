#include "reports/internal/words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace isthmus::reports {

std::string KindInWords(const std::string& name) {
  constexpr std::array<std::pair<const char*, const char*>, 12> kWords = {{
      {"tp_comm", "tensor parallel"},
      {"cp_comm", "context parallel"},
      {"ep_comm", "expert parallel"},
      {"pipeline_comm", "pipeline"},
      {"boundary_comm", "boundary"},
      {"dp_comm", "gradients, parameters"},
      {"scalar_comm", "scalars"},
      {"exposed_comm", "exposed communication"},
      {"host", "host gaps"},
      {"nvlink", "NVLink"},
      {"pcie", "PCIe"},
      {"nic", "NIC"},
  }};
  for (const auto& [key, words] : kWords) {
    if (name == key) return words;
  }
  std::string words = name;
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

std::string PlacementInWords(const std::string& placement) {
  std::string words = placement;
  std::replace(words.begin(), words.end(), '_', '-');
  return words;
}

std::string VerdictInWords(const std::string& verdict) {
  std::string words = verdict;
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

std::string RankRange(std::int64_t first, std::int64_t count) {
  if (count <= 1) return "rank " + base::FormatCount(first);
  return fmt::format("ranks {}-{}", base::FormatCount(first), base::FormatCount(first + count - 1));
}

std::string ParametersInWords(double parameters) {
  if (!(parameters > 0)) return {};
  if (parameters >= 1e9) {
    const double billions = parameters / 1e9;
    return fmt::format("{:.{}f} B", billions, billions < 99.95 ? 1 : 0);
  }
  return fmt::format("{:.1f} M", parameters / 1e6);
}

std::string RateInWords(double per_second) {
  constexpr double kThousand = 999.95;
  if (per_second < kThousand) return fmt::format("{:.1f}", per_second);
  return base::FormatCount(std::llround(per_second));
}

}  // namespace isthmus::reports
