#include "studies/verdict_scores.h"

#include <gtest/gtest.h>

#include "studies/validate.h"

namespace isthmus::studies {
namespace {

RowResult Row(const char* framework, bool out_of_memory, const char* verdict,
              const char* strict = "") {
  RowResult row;
  row.run.framework = framework;
  row.run.ran_out_of_memory = out_of_memory;
  if (!out_of_memory) row.run.measured_step_time_s = 1.0;
  row.is_predicted = true;
  row.verdict = verdict;
  row.strict_verdict = strict;
  return row;
}

// Four ran out: two called so, one borderline, one fits. Three ran: one refused.
// Precision 2/3, recall 2/4, fits kept 2/3. The strict verdict refuses nobody that ran and finds
// three: precision 3/3, recall 3/4.
TEST(VerdictScoresTest, CountsByFrameworkAndTakesBorderlineForFits) {
  const std::vector<RowResult> rows{Row("sweep", true, "does_not_fit"),
                                    Row("sweep", true, "does_not_fit"),
                                    Row("sweep", true, "borderline", "does_not_fit"),
                                    Row("sweep", true, "fits"),
                                    Row("sweep", false, "does_not_fit", "borderline"),
                                    Row("sweep", false, "fits"),
                                    Row("sweep", false, "borderline"),
                                    Row("other", false, "fits")};
  const std::vector<VerdictScore> scores = ScoreVerdicts(rows);
  ASSERT_EQ(scores.size(), 1);  // nobody of `other` ran out of memory
  EXPECT_EQ(scores[0].framework, "sweep");
  EXPECT_DOUBLE_EQ(scores[0].scored.precision(), 2.0 / 3);
  EXPECT_DOUBLE_EQ(scores[0].scored.recall(), 0.5);
  EXPECT_DOUBLE_EQ(scores[0].scored.fits_kept(), 2.0 / 3);
  EXPECT_DOUBLE_EQ(scores[0].strict.precision(), 1);
  EXPECT_DOUBLE_EQ(scores[0].strict.recall(), 0.75);
}

// A row that nobody predicted, or of which nobody knows whether it ran, counts nowhere.
TEST(VerdictScoresTest, LeavesOutWhatIsNotKnown) {
  RowResult skipped = Row("sweep", true, "does_not_fit");
  skipped.is_predicted = false;
  RowResult memory_only = Row("sweep", false, "fits");
  memory_only.run.measured_step_time_s.reset();
  const std::vector<VerdictScore> scores =
      ScoreVerdicts({skipped, memory_only, Row("sweep", true, "fits")});
  ASSERT_EQ(scores.size(), 1);
  EXPECT_EQ(scores[0].scored.out_of_memory, 1);
  EXPECT_EQ(scores[0].scored.ran, 0);
}

}  // namespace
}  // namespace isthmus::studies
