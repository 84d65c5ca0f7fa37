#include "studies/scatter_svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isthmus::studies {
namespace {

using testing::HasSubstr;
using testing::Not;

RowResult Row(const std::string& id, double measured_s, double predicted_s) {
  RowResult row{.run = {.row_id = id, .table = "runs", .model = "a <b> & c"}};
  row.run.measured_step_time_s = measured_s;
  row.predicted_step_time_s = predicted_s;
  row.error = predicted_s / measured_s - 1;
  return row;
}

TEST(ScatterSvgTest, PointsLieOnALogarithmicPlane) {
  Validation validation;
  validation.rows = {Row("low", 1, 1), Row("high", 100, 100)};
  const std::string svg = RenderScatterSvg(validation);
  // 1/1.2 to 100·1.2 s over 560 points: log10(1.2) = 0.0792 of 2.1584 decades from the edge.
  EXPECT_THAT(svg, HasSubstr("<circle cx=\"90.5\" cy=\"579.5\""));
  EXPECT_THAT(svg, HasSubstr("<circle cx=\"609.5\" cy=\"60.5\""));
  EXPECT_THAT(svg, HasSubstr("runs: 2 rows, median 0.0 %"));
  EXPECT_THAT(svg, HasSubstr("a &lt;b&gt; &amp; c"));
  EXPECT_THAT(svg, HasSubstr("</svg>\n"));
}

TEST(ScatterSvgTest, SetsAreTheSeriesWhereThereAreAny) {
  Validation validation;
  validation.rows = {Row("a", 1, 1.1), Row("b", 2, 2)};
  validation.rows[0].set = "dense";
  const std::string svg = RenderScatterSvg(validation);
  EXPECT_THAT(svg, HasSubstr("dense: 1 rows, median 10.0 %"));
  EXPECT_THAT(svg, HasSubstr("in no set: 1 rows"));
  EXPECT_THAT(svg, Not(HasSubstr("runs: ")));
}

TEST(ScatterSvgTest, WithoutTimesThereIsNoPicture) {
  EXPECT_EQ(RenderScatterSvg(Validation{}), "");
}

}  // namespace
}  // namespace isthmus::studies
