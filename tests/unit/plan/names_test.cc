#include <set>
#include <string>

#include <gtest/gtest.h>

#include "plan/model/kernel.h"
#include "plan/program/op.h"
#include "plan/program/value.h"

namespace isthmus::plan {
namespace {

TEST(NamesTest, EveryEnumeratorHasANameOfItsOwn) {
  std::set<std::string> categories;
  for (int index = 0; index < kNumMemoryCategories; ++index) {
    categories.insert(ToText(static_cast<MemoryCategory>(index)));
  }
  EXPECT_EQ(categories.size(), static_cast<std::size_t>(kNumMemoryCategories));
  std::set<std::string> purposes;
  for (int index = 0; index <= static_cast<int>(Purpose::kOptimizer); ++index) {
    purposes.insert(ToText(static_cast<Purpose>(index)));
  }
  EXPECT_EQ(purposes.size(), 8U);
  EXPECT_EQ(ToText(CollectiveKind::kReduceScatter), "reduce_scatter");
}

TEST(NamesTest, DtypesHaveTheirWidths) {
  EXPECT_EQ(BytesOf(DType::kFp8).value(), 1);
  EXPECT_EQ(BytesOf(DType::kBf16).value(), 2);
  EXPECT_EQ(BytesOf(DType::kFp16).value(), 2);
  EXPECT_EQ(BytesOf(DType::kFp32).value(), 4);
}

}  // namespace
}  // namespace isthmus::plan
