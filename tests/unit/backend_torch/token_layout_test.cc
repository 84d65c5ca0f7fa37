#include "backend/torch/modules/token_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isthmus::tests {
namespace {

using backend::TokenLayout;
using testing::ElementsAre;

TokenLayout Decoder() {
  return {.num_sequences = 3, .sequence = 8, .span = 8, .cp = 2, .causal = true};
}

TEST(TokenLayout, DecodersHoldAChunkFromEachEnd) {
  // 2 · cp = 4 chunks of 2 tokens: rank 0 holds chunks 0 and 3, rank 1 holds 1 and 2.
  EXPECT_THAT(Decoder().PositionsOf(0), ElementsAre(0, 1, 6, 7));
  EXPECT_THAT(Decoder().PositionsOf(1), ElementsAre(2, 3, 4, 5));
  EXPECT_EQ(Decoder().num_tokens(), 12);
}

TEST(TokenLayout, EncodersHoldSlices) {
  const TokenLayout layout{.num_sequences = 1, .sequence = 6, .span = 3, .cp = 2, .causal = false};
  EXPECT_THAT(layout.AllPositions(), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(layout.PositionsOf(1), ElementsAre(3, 4, 5));
}

TEST(TokenLayout, QueriesOfBothChunksSeeTheEarlierHalfOfAnEarlierRank) {
  // Positions 2-5 see all of 0 and 1 and nothing of 6 and 7: half of a block, nothing blocked in
  // it.
  const TokenLayout layout = Decoder();
  const auto part =
      backend::FindVisible(layout, layout.PositionsOf(1), layout.PositionsOf(0), at::kCPU);
  EXPECT_EQ(part.num_queries, 4);
  EXPECT_EQ(part.key_begin, 0);
  EXPECT_EQ(part.num_keys, 2);
  EXPECT_FALSE(part.blocked.defined());
}

TEST(TokenLayout, OnlyTheLaterChunkSeesALaterRank) {
  const TokenLayout layout = Decoder();
  const auto part =
      backend::FindVisible(layout, layout.PositionsOf(0), layout.PositionsOf(1), at::kCPU);
  EXPECT_EQ(part.query_begin, 2);
  EXPECT_EQ(part.num_queries, 2);
  EXPECT_EQ(part.num_keys, 4);
  EXPECT_FALSE(part.blocked.defined());
}

TEST(TokenLayout, DocumentsDoNotSeeEachOther) {
  TokenLayout layout = Decoder();
  layout.span = 2;
  const auto part =
      backend::FindVisible(layout, layout.PositionsOf(0), layout.PositionsOf(1), at::kCPU);
  EXPECT_EQ(part.num_queries, 0);
}

}  // namespace
}  // namespace isthmus::tests
