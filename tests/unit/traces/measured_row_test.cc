#include "traces/measured_row.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace isthmus::traces {
namespace {

TEST(MeasuredRow, ComesBackFromItsTextToTheLastDigit) {
  const std::vector<MeasuredRow> rows = {{.table = "gemm.fp32",
                                          .point = "m1_n2_k3",
                                          .value = 1.0 / 3,
                                          .core_s = 1e-300,
                                          .busy_ranks = 4,
                                          .spread = 0.1,
                                          .num_samples = 7},
                                         {.table = "process", .held_out = true, .value = 1e8}};
  EXPECT_EQ(ParseMeasuredRows(ToCsv(rows), "rows.csv"), rows);
}

TEST(MeasuredRow, NamesTheLineThatIsNone) {
  for (const char* line :
       {"a,b", "a,b,0,1,0,0,1", "a,b,0,x,0,0,0,1", "a,b,2,1,0,0,0,1", ",b,0,1,0,0,0,1"}) {
    try {
      (void)ParseMeasuredRows("process,,0,1,0,0,0,1\n" + std::string(line) + "\n", "rows.csv");
      FAIL() << line;
    } catch (const base::Error& error) {
      EXPECT_STREQ(error.what(), "rows.csv:2: error: not a row of measurements");
    }
  }
}

}  // namespace
}  // namespace isthmus::traces
