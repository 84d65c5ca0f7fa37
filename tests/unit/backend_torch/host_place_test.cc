#include "backend/torch/record/host_place.h"

#include <gtest/gtest.h>

namespace isthmus::backend {
namespace {

TEST(HostPlace, HostsAreNumberedByTheirFirstRank) {
  // Two hosts in turns, then a third.
  const std::vector<std::int64_t> hosts{70, 30, 70, 30, 50};
  const std::vector<std::int32_t> nodes{0, 1, 0, 1, 2};
  const std::vector<std::size_t> first_ranks{0, 1, 0, 1, 4};
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    EXPECT_EQ(PlaceAmong(hosts, rank).node, nodes[rank]);
    EXPECT_EQ(PlaceAmong(hosts, rank).first_rank, first_ranks[rank]);
  }
}

}  // namespace
}  // namespace isthmus::backend
