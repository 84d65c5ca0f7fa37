#include "base/text.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/unit_literals.h"

namespace isthmus::base {
namespace {

using namespace literals;

TEST(ClosestName, FindsTheSlipOfThePen) {
  const std::vector<std::string> names = {"layout", "workload", "precision", "tp"};
  EXPECT_EQ(ClosestName("layuot", names), "layout");
  EXPECT_EQ(ClosestName("Workload", names), "workload");
  EXPECT_EQ(ClosestName("tpp", names), "tp");
  EXPECT_EQ(ClosestName("banana", names), std::nullopt);
  EXPECT_EQ(ClosestName("x", {}), std::nullopt);
}

TEST(EditDistance, CountsEdits) {
  EXPECT_EQ(EditDistance("", "abc"), 3U);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3U);
  EXPECT_EQ(EditDistance("ab", "ba"), 1U);  // A swap of neighbours is one edit.
}

TEST(Format, BytesTakeBinaryPrefixes) {
  EXPECT_EQ(FormatBytes(0_B), "0 B");
  EXPECT_EQ(FormatBytes(1023_B), "1023 B");
  EXPECT_EQ(FormatBytes(1_KiB), "1.00 KiB");
  EXPECT_EQ(FormatBytes(ScaleBytes(1_GiB, 12.34)), "12.3 GiB");
  EXPECT_EQ(FormatBytes(1_GiB - 1_B), "1.00 GiB");  // Not "1024 MiB".
  EXPECT_EQ(FormatBytes(-2_MiB), "-2.00 MiB");
}

TEST(Format, SecondsTakeTheUnitThatKeepsThemReadable) {
  EXPECT_EQ(FormatSeconds(0_s), "0 s");
  EXPECT_EQ(FormatSeconds(7.568_s), "7.57 s");
  EXPECT_EQ(FormatSeconds(3.2_ms), "3.20 ms");
  EXPECT_EQ(FormatSeconds(0.99996_ms), "1.00 ms");  // Not "1000 us".
  EXPECT_EQ(FormatSeconds(15_us), "15.0 us");
  EXPECT_EQ(FormatSeconds(4_ps), "4.00 ps");
  EXPECT_EQ(FormatSeconds(725_s), "12 min 5 s");
  EXPECT_EQ(FormatSeconds(12300_s), "3 h 25 min");
  EXPECT_EQ(FormatSeconds(216000_s), "2.50 days");
}

TEST(Format, NumbersInARowAreARange) {
  EXPECT_EQ(FormatRanges(std::vector<int>{0, 4, 5, 6, 9, 10}), "0, 4-6, 9-10");
  EXPECT_EQ(FormatRanges(std::vector<int>{7, 3, 2}), "7, 3, 2");
  EXPECT_EQ(FormatRanges({}), "");
}

TEST(Format, CountsHaveThousandsApart) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1024), "1,024");
  EXPECT_EQ(FormatCount(-1234567), "-1,234,567");
}

TEST(Format, RatesTakeDecimalPrefixes) {
  EXPECT_EQ(FormatRate(450_GBps), "450 GB/s");
  EXPECT_EQ(FormatRate(400_Gbps), "50.0 GB/s");
  EXPECT_EQ(FormatRate(989.4_TFLOPps), "989 TFLOP/s");
  EXPECT_EQ(FormatFlops(1200_TFLOP), "1.20 PFLOP");
  EXPECT_EQ(FormatFraction(0.375), "37.5 %");
}

}  // namespace
}  // namespace isthmus::base
