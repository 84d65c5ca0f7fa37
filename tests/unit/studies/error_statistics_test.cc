#include "studies/error_statistics.h"

#include <vector>

#include <gtest/gtest.h>

namespace isthmus::studies {
namespace {

TEST(ErrorStatisticsTest, FourErrorsByHand) {
  // Sizes sorted: 0.01, 0.02, 0.04, 0.10. Median at place 1.5: (0.02 + 0.04) / 2 = 0.03. 90th
  // percentile at place 0.9 * 3 = 2.7: 0.04 + 0.7 * 0.06 = 0.082. Mean (0.02 - 0.04 - 0.10 + 0.01)
  // / 4 = -0.0275.
  const std::vector<double> errors{0.02, -0.04, -0.10, 0.01};
  const ErrorStatistics statistics = Summarise(errors);
  EXPECT_EQ(statistics.n, 4);
  EXPECT_NEAR(*statistics.median_abs_error, 0.03, 1e-12);
  EXPECT_NEAR(*statistics.p90_abs_error, 0.082, 1e-12);
  EXPECT_NEAR(*statistics.mean_signed_error, -0.0275, 1e-12);
}

TEST(ErrorStatisticsTest, NoErrorsHaveNoFigures) {
  const ErrorStatistics statistics = Summarise({});
  EXPECT_EQ(statistics.n, 0);
  EXPECT_FALSE(statistics.median_abs_error);
  EXPECT_FALSE(statistics.p90_abs_error);
  EXPECT_FALSE(statistics.mean_signed_error);
}

TEST(QuantileTest, EndsAreTheExtremes) {
  EXPECT_EQ(Quantile({3, 1, 2}, 0), 1);
  EXPECT_EQ(Quantile({3, 1, 2}, 1), 3);
  EXPECT_EQ(Quantile({7}, 0.9), 7);
}

TEST(CorrelationTest, LinesCorrelateAndConstantsDoNot) {
  const std::vector<double> rising{1, 2, 3, 4};
  const std::vector<double> line{5, 7, 9, 11};
  const std::vector<double> falling{4, 3, 2, 1};
  const std::vector<double> constant{2, 2, 2, 2};
  EXPECT_NEAR(*Correlation(rising, line), 1, 1e-12);
  EXPECT_NEAR(*Correlation(rising, falling), -1, 1e-12);
  EXPECT_FALSE(Correlation(rising, constant));
  // Deviations of (1,2,4) from 7/3: -4/3, -1/3, 5/3; of (2,1,3) from 2: 0, -1, 1. Products sum to
  // 1/3 + 5/3 = 2; squares to 14/3 and 2: 2 / sqrt(28/3) = 0.65465.
  EXPECT_NEAR(*Correlation(std::vector<double>{1, 2, 4}, std::vector<double>{2, 1, 3}), 0.65465,
              1e-5);
}

}  // namespace
}  // namespace isthmus::studies
