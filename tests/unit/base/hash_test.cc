#include "base/hash.h"

#include <cstdint>
#include <set>

#include <gtest/gtest.h>

namespace isthmus::base {
namespace {

TEST(Hash, OrderAndBordersCount) {
  EXPECT_NE(HashBuilder().Add("ab").Add("c").digest(), HashBuilder().Add("a").Add("bc").digest());
  EXPECT_NE(HashBuilder().Add(1).Add(2).digest(), HashBuilder().Add(2).Add(1).digest());
  EXPECT_NE(HashBuilder().Add("").digest(), HashBuilder().digest());
  EXPECT_NE(HashBuilder(1).digest(), HashBuilder(2).digest());
}

TEST(Hash, EqualValuesHashEqually) {
  EXPECT_EQ(HashBuilder().Add(0.0).digest(), HashBuilder().Add(-0.0).digest());
  EXPECT_EQ(HashBuilder().Add(std::int32_t{-5}).digest(),
            HashBuilder().Add(std::int64_t{-5}).digest());
}

TEST(Hash, SmallNumbersDontCollide) {
  std::set<std::uint64_t> digests;
  for (int value = 0; value < 100'000; ++value) digests.insert(HashBuilder().Add(value).digest());
  EXPECT_EQ(digests.size(), 100'000U);
}

// Pinned: hashes are stored in traces and reports.
TEST(Hash, DigestsStayWhatTheyWere) {
  EXPECT_EQ(HashText(HashBuilder().Add("isthmus").Add(42).digest()), "bcc39e6a6648872b");
  EXPECT_EQ(HashText(0xAB), "00000000000000ab");
}

}  // namespace
}  // namespace isthmus::base
