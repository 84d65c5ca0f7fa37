#include "studies/contradictions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isthmus::studies {
namespace {

using testing::IsEmpty;

RowResult Row(const std::string& id, double work, double measured_s, double predicted_s) {
  RowResult row{.run = {.row_id = id, .model = "model of " + id, .layout = "tp8 pp4"}};
  row.run.spec.emplace();
  row.run.measured_step_time_s = measured_s;
  row.predicted_step_time_s = predicted_s;
  row.error = predicted_s / measured_s - 1;
  row.work_flops = work;
  row.is_predicted = true;
  return row;
}

TEST(ContradictionsTest, EqualWorkThatTookHalfAsMuchAgainIsNamedWithWhatDiffers) {
  // Table A2 of arXiv 2605.27678: 12.42 s and 18.02 s for 2 % more work.
  const auto pairs =
      FindContradictions({Row("A2.19.C", 102, 18.02, 15.7), Row("A2.17.C", 100, 12.42, 15.5)});
  ASSERT_EQ(pairs.size(), 1U);
  EXPECT_EQ(pairs[0].first, "A2.17.C");
  EXPECT_EQ(pairs[0].second, "A2.19.C");
  EXPECT_DOUBLE_EQ(pairs[0].work_ratio, 1.02);
  EXPECT_NEAR(pairs[0].measured_ratio, 1.451, 0.001);
  EXPECT_EQ(pairs[0].differs, "model model of A2.17.C / model of A2.19.C");
}

TEST(ContradictionsTest, WhatWorkOrPredictionExplainsIsNone) {
  // 10 % more work; 5 % more time; a slower step that the model sees as well.
  EXPECT_THAT(FindContradictions({Row("a", 100, 10, 10), Row("b", 110, 15, 10)}), IsEmpty());
  EXPECT_THAT(FindContradictions({Row("a", 100, 10, 10), Row("b", 100, 10.5, 10)}), IsEmpty());
  EXPECT_THAT(FindContradictions({Row("a", 100, 10, 10), Row("b", 100, 15, 14.5)}), IsEmpty());
}

TEST(ContradictionsTest, OtherLayoutsAreNotCompared) {
  RowResult other = Row("b", 100, 15, 10);
  other.run.layout = "tp8 pp2";
  EXPECT_THAT(FindContradictions({Row("a", 100, 10, 10), other}), IsEmpty());
}

}  // namespace
}  // namespace isthmus::studies
