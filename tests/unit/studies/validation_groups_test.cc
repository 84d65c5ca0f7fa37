#include "studies/validation_groups.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file_io.h"

namespace isthmus::studies {
namespace {

using testing::ElementsAre;
using testing::Pair;

RowResult Predicted(const std::string& id, double error) {
  RowResult row{.run = {.row_id = id, .table = "runs", .gpu = "H100"}};
  row.is_predicted = true;
  row.error = error;
  return row;
}

RowResult Skipped(const std::string& id, const std::string& why) {
  return {.run = {.row_id = id, .table = "runs", .gpu = "H100", .why = why}};
}

const RowGroup& Find(const Validation& validation, const std::string& by, const std::string& name) {
  for (const RowGroup& group : validation.groups) {
    if (group.by == by && group.name == name) return group;
  }
  throw std::logic_error("no group " + name);
}

TEST(GroupRowsTest, SetsAndSkipsAreCounted) {
  Validation validation;
  validation.rows = {Predicted("R1", 0.10), Predicted("R2", -0.02), Skipped("R3", "vpp"),
                     Skipped("R4", "vpp"), Skipped("R5", "experts")};
  const RowSets sets{.sets = {{"dense", {"R1", "R2", "R3", "R9"}}, {"other", {"R8"}}}};
  GroupRows(&sets, validation);

  EXPECT_EQ(validation.summary.step_time.n, 2);
  EXPECT_EQ(validation.summary.num_skipped, 3);
  EXPECT_THAT(validation.skipped_by_reason, ElementsAre(Pair("experts", 1), Pair("vpp", 2)));
  const RowGroup& dense = Find(validation, "set", "dense");
  EXPECT_EQ(dense.step_time.n, 2);
  EXPECT_EQ(dense.num_skipped, 1);
  EXPECT_NEAR(*dense.step_time.median_abs_error, 0.06, 1e-12);  // of 0.10 and 0.02
  EXPECT_NEAR(*dense.step_time.mean_signed_error, 0.04, 1e-12);
  EXPECT_THAT(validation.not_loaded, ElementsAre("dense R9", "other R8"));
  EXPECT_THAT(validation.skipped_in_sets, ElementsAre("dense R3"));
  EXPECT_EQ(Find(validation, "gpu", "H100").step_time.n, 2);
}

RowResult InMode(const std::string& workload, const std::string& mode, double step_s,
                 std::optional<double> gain_pct) {
  RowResult row{.run = {.row_id = workload + "." + mode, .table = workload.substr(0, 2)}};
  row.run.workload = workload;
  row.run.mode = mode;
  row.run.measured_gain_pct = gain_pct;
  row.is_predicted = true;
  row.predicted_full_step_time_s = step_s;
  return row;
}

TEST(CompareGainsTest, GainsAreRatiosOfWholeSteps) {
  Validation validation;
  validation.rows = {InMode("A2.1", "H", 11.0, std::nullopt), InMode("A2.1", "C", 10.0, 12.0),
                     InMode("A2.2", "H", 10.0, std::nullopt), InMode("A2.2", "C", 10.1, 2.0),
                     InMode("A4.1", "H", 10.0, std::nullopt), InMode("A4.1", "NC", 12.5, 5.0),
                     InMode("A4.2", "NC", 12.5, 5.0)};  // no row in mode H
  CompareGains(validation);

  ASSERT_EQ(validation.gains.size(), 3U);
  EXPECT_NEAR(validation.gains[0].predicted_pct, 10.0, 1e-9);   // 11 / 10 - 1
  EXPECT_NEAR(validation.gains[1].predicted_pct, -0.99, 0.01);  // 10 / 10.1 - 1
  EXPECT_NEAR(validation.gains[2].predicted_pct, -20.0, 1e-9);  // 10 / 12.5 - 1
  ASSERT_EQ(validation.gain_summaries.size(), 3U);
  const GainSummary& a2 = validation.gain_summaries[0];
  EXPECT_EQ(a2.table, "A2");
  EXPECT_EQ(a2.num_signs_right, 1);
  EXPECT_EQ(a2.num_signs_within_3_pct, 2);  // +2.0 and -1.0 are both below 3 points
  // Errors -2 and -2.99: median (2 + 2.99) / 2.
  EXPECT_NEAR(a2.median_abs_error_pct, 2.495, 0.01);
  // The table's median is 7: 12 and 2 are 5 away.
  EXPECT_NEAR(a2.constant_baseline_pct, 5.0, 1e-9);
  EXPECT_EQ(validation.gain_summaries[2].table, "all");
  EXPECT_EQ(validation.gain_summaries[2].n, 3);
}

TEST(ReadSetsTest, ColumnsAreNeeded) {
  const std::string path = testing::TempDir() + "/sets.csv";
  base::WriteFile(path, "name,row_id\na,b\n");
  EXPECT_THROW(ReadSets(path), base::Error);
  base::WriteFile(path, "set,row_id\na,R1\nb,R2\na,R3\n");
  const RowSets sets = ReadSets(path);
  ASSERT_EQ(sets.sets.size(), 2U);
  EXPECT_EQ(sets.sets[0].first, "a");
  EXPECT_THAT(sets.sets[0].second, ElementsAre("R1", "R3"));
}

TEST(GroupRowsTest, ARecipeIsOneObservation) {
  Validation validation;
  validation.rows = {Predicted("R1", 0.01), Predicted("R2", 0.02), Predicted("R3", 0.06),
                     Predicted("R4", -0.10)};
  for (int row = 0; row < 3; ++row) {
    validation.rows[static_cast<std::size_t>(row)].run.recipe = "llama on 8 to 32 GPUs";
  }
  GroupRows(nullptr, validation);
  // Medians of the recipes: +2 % of three rows, -10 % of the row on its own.
  EXPECT_EQ(validation.summary.recipes.n, 2);
  EXPECT_DOUBLE_EQ(*validation.summary.recipes.median_abs_error, 0.06);
  EXPECT_EQ(Find(validation, "recipe", "llama on 8 to 32 GPUs").step_time.n, 3);
}

TEST(GroupRowsTest, BandsAreCountedWhereThereIsAMeasuredTime) {
  Validation validation;
  validation.rows = {Predicted("R1", 0.0), Predicted("R2", 0.0), Predicted("R3", 0.0)};
  for (RowResult& row : validation.rows) row.run.measured_step_time_s = 10;
  validation.rows[0].band = StepBand{.low_step_time_s = 9, .high_step_time_s = 11, .parts = {}};
  validation.rows[1].band = StepBand{.low_step_time_s = 10.5, .high_step_time_s = 11, .parts = {}};
  GroupRows(nullptr, validation);
  EXPECT_EQ(validation.summary.num_with_band, 2);
  EXPECT_EQ(validation.summary.num_in_band, 1);
}

}  // namespace
}  // namespace isthmus::studies
