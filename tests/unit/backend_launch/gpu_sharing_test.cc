#include "backend/launch/gpu_sharing.h"

#include <gtest/gtest.h>

namespace isthmus::backend {
namespace {

using Pair = std::optional<std::pair<int, int>>;

TEST(GpuSharingTest, FindsTheFirstRankThatHasAnothersGpu) {
  EXPECT_EQ(FirstToShare({}), Pair());
  EXPECT_EQ(FirstToShare({"a 1"}), Pair());
  EXPECT_EQ(FirstToShare({"a 1", "a 2", "b 1", "b 2"}), Pair());
  EXPECT_EQ(FirstToShare({"a 1", "a 2", "a 1", "a 2"}), Pair({0, 2}));
}

// Two machines of unlike size: four ranks on two GPUs, and two on two. Every rank sees the list, so
// none takes another way than the others.
TEST(GpuSharingTest, OneMachineWithTooFewGpusDecidesForAll) {
  EXPECT_EQ(FirstToShare({"a 1", "a 2", "a 1", "a 2", "b 1", "b 2"}), Pair({0, 2}));
}

// A launcher that shows each rank one GPU only: all are "GPU 0" to their process.
TEST(GpuSharingTest, GpusAreTheDriversNotTheProcesses) {
  EXPECT_EQ(FirstToShare({GpuIdentity("a", "GPU-11"), GpuIdentity("a", "GPU-22")}), Pair());
  EXPECT_NE(GpuIdentity("a", "GPU-11"), GpuIdentity("b", "GPU-11"));
}

TEST(GpuSharingTest, AMachineHasOneIdentity) {
  EXPECT_FALSE(HostIdentity().empty());
  EXPECT_EQ(HostIdentity(), HostIdentity());
}

}  // namespace
}  // namespace isthmus::backend
