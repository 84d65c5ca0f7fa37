#include "backend/launch/gpu_sharing.h"

#include <gtest/gtest.h>

namespace isthmus::backend {
namespace {

TEST(GpuSharingTest, FindsRanksOnOneGpu) {
  EXPECT_FALSE(AnyIsShared({}));
  EXPECT_FALSE(AnyIsShared({"a 1"}));
  EXPECT_FALSE(AnyIsShared({"a 1", "a 2", "b 1", "b 2"}));
  EXPECT_TRUE(AnyIsShared({"a 1", "a 2", "a 1", "a 2"}));
}

// Two machines of unlike size: four ranks on two GPUs, and two on two. Every rank sees the list, so
// none takes another way than the others.
TEST(GpuSharingTest, OneMachineWithTooFewGpusDecidesForAll) {
  EXPECT_TRUE(AnyIsShared({"a 1", "a 2", "a 1", "a 2", "b 1", "b 2"}));
}

// A launcher that shows each rank one GPU only: all are "GPU 0" to their process.
TEST(GpuSharingTest, GpusAreTheDriversNotTheProcesses) {
  EXPECT_FALSE(AnyIsShared({GpuIdentity("a", "GPU-11"), GpuIdentity("a", "GPU-22")}));
  EXPECT_NE(GpuIdentity("a", "GPU-11"), GpuIdentity("b", "GPU-11"));
}

TEST(GpuSharingTest, AMachineHasAnIdentity) { EXPECT_FALSE(HostIdentity().empty()); }

}  // namespace
}  // namespace isthmus::backend
