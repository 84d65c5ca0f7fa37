#include "base/error.h"

#include <cerrno>

#include <gtest/gtest.h>

#include "base/check.h"

namespace isthmus::base {
namespace {

TEST(Error, DiagnosticShowsPlaceMessageAndHint) {
  EXPECT_EQ(
      FormatDiagnostic({"scenarios/vlm.yaml", 14, 9, "layout.tp: 6 does not divide num_heads 32",
                        "use 1, 2, 4, 8, 16 or 32"}),
      "scenarios/vlm.yaml:14:9: error: layout.tp: 6 does not divide num_heads 32\n"
      "  hint: use 1, 2, 4, 8, 16 or 32");
}

TEST(Error, UnknownPlacesAreLeftOut) {
  EXPECT_EQ(FormatDiagnostic({"a.yaml", 0, 0, "empty", ""}), "a.yaml: error: empty");
  EXPECT_EQ(FormatDiagnostic({"a.yaml", 3, 0, "odd", ""}), "a.yaml:3: error: odd");
  EXPECT_EQ(FormatDiagnostic({"", 0, 0, "odd", ""}), "error: odd");
}

TEST(Error, ScenarioErrorListsAllMistakes) {
  const ScenarioError error({{"a.yaml", 1, 2, "first", "try x"}, {"a.yaml", 3, 4, "second", ""}});
  EXPECT_STREQ(error.what(), "a.yaml:1:2: error: first\n  hint: try x\na.yaml:3:4: error: second");
  EXPECT_EQ(error.diagnostics().size(), 2U);
}

TEST(Error, IoErrorNamesActionPathAndReason) {
  EXPECT_STREQ(IoError("write", "/x/y", ENOSPC).what(),
               "cannot write /x/y: No space left on device");
}

TEST(CheckDeathTest, FailurePrintsPlaceConditionTextAndTime) {
  const SimTime now = SimTime::FromPs(42);
  const CheckTimeScope scope(now);
  EXPECT_DEATH(ISTHMUS_CHECK(1 + 1 == 3, "sum {}", 2),
               "error_test.cc:[0-9]+: check failed: 1 \\+ 1 == 3\n  sum 2\n"
               "  at simulated time 42 ps");
}

TEST(Check, ValuesAreNotLookedAtWhenTheConditionHolds) {
  int num_calls = 0;
  const auto count = [&num_calls] { return ++num_calls; };
  ISTHMUS_CHECK(true, "{}", count());
  ISTHMUS_CHECK(true);
  ISTHMUS_DCHECK(true, "{}", count());
  EXPECT_EQ(num_calls, 0);
}

}  // namespace
}  // namespace isthmus::base
