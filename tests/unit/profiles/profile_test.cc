#include "profiles/profile.h"

#include <limits>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace isthmus::profiles {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Parameter Of(double value, std::string unit, Mark mark = Mark::kMeasured) {
  return {.value = value,
          .unit = std::move(unit),
          .mark = mark,
          .source = "a test",
          .residual = {},
          .strict = {},
          .origin = "gpu.yaml:7"};
}

Profile Sample() {
  ProfileBuilder builder("h100", "2026-11-29", "gpu.yaml");
  builder.Set("gemm.bf16.peak_rate", Of(836e12, "FLOP/s"));
  builder.Set("gemm.bf16.latency", Of(2.8e-6, "s"));
  builder.Set("gemm.tile.128x256", Of(1, "1"));
  builder.Set("device.memory", Of(80e9, "B"));
  builder.Set("device.share", Of(0.5, "1"));
  return std::move(builder).Build();
}

std::string ErrorOf(const auto& call) {
  try {
    call();
  } catch (const base::Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Profile, TypedAccessorsReadTheStatedUnit) {
  const Profile profile = Sample();
  EXPECT_EQ(profile.Rate("gemm.bf16.peak_rate"), base::FlopsPerSecond(836e12));
  EXPECT_EQ(profile.Time("gemm.bf16.latency"), base::Seconds(2.8e-6));
  EXPECT_EQ(profile.Size("device.memory"), base::Bytes(80'000'000'000));
  EXPECT_EQ(profile.Count("gemm.tile.128x256"), 1);
}

TEST(Profile, MissingKeyNamesKeyProfileFileAndTheClosestKey) {
  EXPECT_EQ(ErrorOf([] { (void)Sample().Rate("gemm.bf16.peek_rate"); }),
            "error: profile h100 has no parameter gemm.bf16.peek_rate (looked "
            "in gpu.yaml)\n"
            "  hint: it has gemm.bf16.peak_rate");
}

TEST(Profile, WrongUnitNamesBothUnitsAndThePlace) {
  EXPECT_EQ(ErrorOf([] { (void)Sample().Time("device.memory"); }),
            "gpu.yaml:7: error: parameter device.memory of profile h100 is in "
            "B, needed in s");
}

TEST(Profile, CountRefusesFractions) {
  EXPECT_THAT(ErrorOf([] { (void)Sample().Count("device.share"); }),
              HasSubstr("parameter device.share of profile h100 is 0.5, needs "
                        "a whole number"));
}

TEST(Profile, KeysUnderAPrefixComeInOrder) {
  EXPECT_THAT(Sample().KeysUnder("gemm."),
              ElementsAre("gemm.bf16.latency", "gemm.bf16.peak_rate", "gemm.tile.128x256"));
  EXPECT_TRUE(Sample().KeysUnder("attention.").empty());
}

TEST(Profile, MergingLetsTheLaterPartWin) {
  ProfileBuilder own("own", "2026-12-01", "own.yaml");
  own.Set("gemm.bf16.latency", Of(5e-6, "s", Mark::kAssumed));
  const Profile merged = MergeProfiles("both", {Sample(), std::move(own).Build()});
  EXPECT_EQ(merged.name(), "both");
  EXPECT_EQ(merged.date(), "2026-12-01");
  EXPECT_THAT(merged.files(), ElementsAre("gpu.yaml", "own.yaml"));
  EXPECT_EQ(merged.Get("gemm.bf16.latency").mark, Mark::kAssumed);
  EXPECT_EQ(merged.Time("gemm.bf16.latency"), base::Seconds(5e-6));
  EXPECT_EQ(merged.parameters().size(), 5U);
}

TEST(Profile, HashKnowsValuesAndMarksButNotNamesOrPlaces) {
  const std::uint64_t hash = Sample().Hash();
  const Profile renamed = MergeProfiles("other", {Sample()});
  EXPECT_EQ(renamed.Hash(), hash);

  for (const Parameter& change : {Of(2.9e-6, "s"), Of(2.8e-6, "s", Mark::kFitted)}) {
    ProfileBuilder part("part");
    part.Set("gemm.bf16.latency", change);
    EXPECT_NE(MergeProfiles("h100", {Sample(), std::move(part).Build()}).Hash(), hash);
  }
}

Profile WithStrict(double strict) {
  Parameter ratio = Of(0.8, "1", Mark::kChosenAfterSeeingRuns);
  ratio.strict = strict;
  ProfileBuilder builder("gpu");
  builder.Set("clock.ratio", ratio);
  builder.Set("step.base", Of(8, "1", Mark::kChosenAfterSeeingRuns));
  return std::move(builder).Build();
}

TEST(Profile, StrictTakesTheValuesThatNoRunHasInfluenced) {
  const Profile strict = WithStrict(0.85).Strict();
  EXPECT_EQ(strict.name(), "gpu (strict)");
  EXPECT_EQ(strict.Number("clock.ratio"), 0.85);
  EXPECT_EQ(strict.Get("clock.ratio").mark, Mark::kAssumed);
  EXPECT_EQ(strict.Get("clock.ratio").strict, std::nullopt);
  // Nothing states what else to use.
  EXPECT_EQ(strict.Number("step.base"), 8);
  EXPECT_EQ(strict.Get("step.base").mark, Mark::kChosenAfterSeeingRuns);
}

TEST(Profile, HashKnowsStrictValues) {
  EXPECT_NE(WithStrict(0.85).Hash(), WithStrict(0.86).Hash());
}

TEST(ProfileBuilder, RefusesAStrictValueBesideAnotherMark) {
  Parameter latency = Of(1e-6, "s", Mark::kAssumed);
  latency.strict = 2e-6;
  ProfileBuilder builder("p");
  EXPECT_EQ(ErrorOf([&] { builder.Set("a", latency); }),
            "gpu.yaml:7: error: parameter a has a strict value, but its mark is assumed\n  hint: "
            "only values chosen_after_seeing_runs have another one beside");
}

TEST(ProfileBuilder, RefusesMalformedKeys) {
  for (const char* key : {"", ".", "a.", ".a", "a..b", "Gemm.rate", "a b"}) {
    ProfileBuilder builder("p");
    EXPECT_THAT(ErrorOf([&] { builder.Set(key, Of(1, "1")); }),
                HasSubstr("is not a parameter's name"))
        << "key '" << key << "'";
  }
}

TEST(ProfileBuilder, RefusesASecondValueANonNumberAndAMissingUnit) {
  ProfileBuilder builder("p");
  builder.Set("a", Of(1, "1"));
  EXPECT_EQ(ErrorOf([&] { builder.Set("a", Of(2, "1")); }),
            "gpu.yaml:7: error: parameter a is set twice");
  EXPECT_THAT(ErrorOf([&] { builder.Set("b", Of(std::numeric_limits<double>::infinity(), "1")); }),
              HasSubstr("parameter b is not a finite number"));
  EXPECT_THAT(ErrorOf([&] { builder.Set("c", Of(1, "")); }),
              HasSubstr("hint: write 1 for a plain number"));
}

TEST(Mark, WordsAreReadAsTheyAreWritten) {
  for (const Mark mark : {Mark::kMeasured, Mark::kFitted, Mark::kDataSheet, Mark::kAssumed,
                          Mark::kChosenAfterSeeingRuns}) {
    EXPECT_EQ(ParseMark(MarkName(mark)), mark);
  }
  EXPECT_EQ(ParseMark("guessed"), std::nullopt);
}

}  // namespace
}  // namespace isthmus::profiles
