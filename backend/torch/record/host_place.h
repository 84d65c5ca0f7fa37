#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace isthmus::backend {

/// Which host a rank is on, by the order in which hosts have their first rank.
struct HostPlace {
  std::int32_t node = 0;
  std::size_t first_rank = 0;  // of that host
};

/// `hosts`: by rank, a number that only ranks of one host share.
HostPlace PlaceAmong(const std::vector<std::int64_t>& hosts, std::size_t rank);

}  // namespace isthmus::backend
