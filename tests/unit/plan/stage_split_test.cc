#include "plan/layout/stage_split.h"

#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isthmus::plan {
namespace {

using testing::ElementsAre;

TEST(BalancedSplitTest, WithoutExtrasItIsEven) {
  EXPECT_THAT(BalancedSplit({.num_layers = 96, .num_stages = 4}), ElementsAre(24, 24, 24, 24));
  EXPECT_THAT(BalancedSplit({.num_layers = 80, .num_stages = 1}), ElementsAre(80));
}

TEST(BalancedSplitTest, AHeadOfOneLayerTakesOneOffTheLastOfTwoStages) {
  // 47 layers and a head of 1: 24 and 23 + 1 are 24 each.
  EXPECT_THAT(BalancedSplit({.num_layers = 47, .num_stages = 2, .last_extra = 1.0}),
              ElementsAre(24, 23));
  // 48 and 1.6: 25 and 23 + 1.6 = 24.6 make 25; 24 and 25.6 would make 25.6.
  EXPECT_THAT(BalancedSplit({.num_layers = 48, .num_stages = 2, .last_extra = 1.6}),
              ElementsAre(25, 23));
}

TEST(BalancedSplitTest, AnEncoderOfThreeLayersLightensTheFirstStage) {
  // Total 96 + 3 + 1 = 100, 25 a stage: 22 + 3, 25, 25, 24 + 1.
  EXPECT_THAT(BalancedSplit({.num_layers = 96, .num_stages = 4, .first_extra = 3, .last_extra = 1}),
              ElementsAre(22, 25, 25, 24));
}

TEST(BalancedSplitTest, EveryStageKeepsALayerAndNoneIsLost) {
  for (int stages = 1; stages <= 8; ++stages) {
    const auto layers =
        BalancedSplit({.num_layers = 9, .num_stages = stages, .first_extra = 50, .last_extra = 50});
    EXPECT_EQ(static_cast<int>(layers.size()), stages);
    EXPECT_GE(std::ranges::min(layers), 1);
    EXPECT_EQ(std::accumulate(layers.begin(), layers.end(), 0), 9);
  }
}

}  // namespace
}  // namespace isthmus::plan
