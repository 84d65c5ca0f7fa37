#include "backend/torch/record/host_place.h"

#include <algorithm>

namespace isthmus::backend {

HostPlace PlaceAmong(const std::vector<std::int64_t>& hosts, std::size_t rank) {
  const auto first = std::find(hosts.begin(), hosts.end(), hosts[rank]);
  HostPlace place{.node = 0, .first_rank = static_cast<std::size_t>(first - hosts.begin())};
  for (auto host = hosts.begin(); host != first; ++host) {
    if (std::find(hosts.begin(), host, *host) == host) ++place.node;
  }
  return place;
}

}  // namespace isthmus::backend
