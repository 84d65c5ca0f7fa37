#include "base/units.h"

#include <gtest/gtest.h>

#include "base/ids.h"
#include "base/unit_literals.h"

namespace isthmus::base {
namespace {

using namespace literals;

template <typename A, typename B>
concept CanAdd = requires(A a, B b) {
  a + b;
};
template <typename A, typename B>
concept CanMultiply = requires(A a, B b) {
  a* b;
};
template <typename A, typename B>
concept CanDivide = requires(A a, B b) {
  a / b;
};
template <typename A, typename B>
concept CanCompare = requires(A a, B b) {
  a < b;
};

// Wrong mixes don't compile.
static_assert(CanAdd<Bytes, Bytes>);
static_assert(!CanAdd<Bytes, BytesPerSecond>);
static_assert(!CanAdd<Bytes, int>);
static_assert(!CanAdd<Seconds, Flops>);
static_assert(!CanAdd<Seconds, double>);
static_assert(!CanMultiply<Bytes, Bytes>);
static_assert(!CanMultiply<Bytes, double>, "a fraction of bytes has to say how it rounds");
static_assert(!CanDivide<Bytes, FlopsPerSecond>);
static_assert(!CanDivide<Flops, BytesPerSecond>);
static_assert(!CanCompare<Bytes, Seconds>);
static_assert(!CanCompare<Rank, DeviceId>);
static_assert(!CanCompare<Rank, int>);
static_assert(!std::is_convertible_v<int, Bytes>);
static_assert(!std::is_convertible_v<double, Seconds>);
static_assert(!std::is_convertible_v<Seconds, double>);
static_assert(!std::is_constructible_v<Bytes, double>);
static_assert(!std::is_constructible_v<Bytes, Seconds>);
static_assert(!std::is_convertible_v<int, Rank>);
static_assert(!std::is_constructible_v<Rank, DeviceId>);

// Literals.
static_assert(400_Gbps == 50_GBps);
static_assert(1_KiB == 1024_B && 1_MB == 1'000'000_B && 80_GiB == Bytes(80LL << 30));
static_assert(1.5_us == Seconds(1.5e-6));
static_assert(989.5_TFLOPps == FlopsPerSecond(989.5e12));

TEST(Units, BytesOverRateIsTime) {
  // 50 GB at 50 GB/s take one second; 1 GB at 400 Gbit/s = 50 GB/s takes 20 ms.
  EXPECT_EQ(50_GB / 50_GBps, 1_s);
  EXPECT_DOUBLE_EQ((1_GB / 400_Gbps).value(), 0.02);
}

TEST(Units, FlopsOverRateIsTime) {
  EXPECT_EQ(2_TFLOP / 1_TFLOPps, 2_s);
  EXPECT_EQ(1_TFLOPps * 3_s, 3_TFLOP);
  EXPECT_EQ(6_TFLOP / 3_s, 2_TFLOPps);
}

TEST(Units, RatioOfOneUnitIsReal) { EXPECT_DOUBLE_EQ(1_GiB / 4_GiB, 0.25); }

TEST(Units, IntegerUnitsScaleByIntegers) {
  EXPECT_EQ(3 * 2_KiB, 6_KiB);
  EXPECT_EQ(7_B / 2, 3_B);                 // Truncates.
  EXPECT_EQ(ScaleBytes(10_B, 0.25), 3_B);  // 2.5 rounds away from zero.
}

TEST(Units, SumsAndDifferences) {
  Bytes total = 1_KiB;
  total += 24_B;
  total -= 1_KiB;
  EXPECT_EQ(total, 24_B);
  EXPECT_EQ(-(1_s) + 3_s, 2_s);
}

TEST(Ids, CountAndHash) {
  Rank rank(3);
  ++rank;
  EXPECT_EQ(rank, Rank(4));
  EXPECT_LT(Rank(3), rank);
  EXPECT_EQ(rank.index(), 4U);
  EXPECT_EQ(std::hash<Rank>()(rank), std::hash<Rank>()(Rank(4)));
}

}  // namespace
}  // namespace isthmus::base
