#include "base/parse_units.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/unit_literals.h"

namespace isthmus::base {
namespace {

using namespace literals;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ParseUnits, BitsAndBytesThousandsAnd1024) {
  EXPECT_EQ(ParseBytesPerSecond("400 Gbit/s").value, 50_GBps);
  EXPECT_EQ(ParseBytesPerSecond("400 Gbps").value, 50_GBps);
  EXPECT_EQ(ParseBytesPerSecond("450GB/s").value, 450_GBps);
  EXPECT_EQ(ParseBytes("80 GiB").value, 80_GiB);
  EXPECT_EQ(ParseBytes("80 GB").value, 80_GB);
  EXPECT_EQ(ParseBytes(" 1.5 KiB ").value, 1536_B);
}

TEST(ParseUnits, TimesRatesAndOthers) {
  EXPECT_EQ(ParseSeconds("1.5 us").value, 1.5_us);
  EXPECT_EQ(ParseSeconds("2 h").value, 7200_s);
  EXPECT_EQ(ParseFlopsPerSecond("989.4 TFLOP/s").value, 989.4_TFLOPps);
  EXPECT_EQ(ParseFlops("3e2 PFLOP").value, 300_PFLOP);
  EXPECT_EQ(ParseHertz("1.5 GHz").value, 1.5e9);
  EXPECT_EQ(ParseWatts("700 W").value, 700.0);
}

TEST(ParseUnits, ABareNumberAsksForItsUnit) {
  const Parsed<Bytes> parsed = ParseBytes("80");
  EXPECT_EQ(parsed.value, std::nullopt);
  EXPECT_EQ(parsed.message, "\"80\" has no unit");
  EXPECT_EQ(parsed.hint,
            "write a size with one of B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, as in \"80 GiB\"");
}

TEST(ParseUnits, AWrongUnitListsTheRightOnes) {
  const Parsed<BytesPerSecond> parsed = ParseBytesPerSecond("400 Gbit");
  EXPECT_EQ(parsed.message, "\"Gbit\" is not a unit of a bandwidth");
  EXPECT_THAT(parsed.hint, HasSubstr("Gbit/s"));
  EXPECT_THAT(parsed.hint, Not(HasSubstr("Gbps")));  // Accepted, but not advertised.
  EXPECT_EQ(ParseBytes("80 gib").value, std::nullopt);
}

TEST(ParseUnits, WhatIsNotANumberIsSaid) {
  EXPECT_EQ(ParseBytes("many GiB").message, "\"many GiB\" is not a size");
  EXPECT_EQ(ParseBytes("").message, "\"\" is not a size");
  EXPECT_EQ(ParseSeconds("nan s").message, "\"nan s\" is not a time");
  EXPECT_EQ(ParseSeconds("inf s").message, "\"inf s\" is not a time");
  EXPECT_EQ(ParseSeconds("-1 s").message, "\"-1 s\" is negative");
  EXPECT_FALSE(std::signbit(ParseSeconds("-0 s").value->value()));
}

TEST(ParseUnits, AbsurdSizesAreOutOfRange) {
  // 2^63 bytes are 8388608 TiB: one TiB less fits, that many don't.
  EXPECT_EQ(ParseBytes("8388607 TiB").value, 8388607_TiB);
  EXPECT_EQ(ParseBytes("8388608 TiB").message, "\"8388608 TiB\" is out of range");
  EXPECT_EQ(ParseBytes("1e999 B").message, "\"1e999 B\" is out of range");
  EXPECT_EQ(ParseSeconds("1e308 days").message, "\"1e308 days\" is out of range");
  EXPECT_EQ(ParseBytes("0.5 B").message, "\"0.5 B\" is not a whole number of bytes");
}

}  // namespace
}  // namespace isthmus::base
