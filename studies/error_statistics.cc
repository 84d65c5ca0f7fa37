#include "studies/error_statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace isthmus::studies {
namespace {

double Mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

double Quantile(std::vector<double> values, double q) {
  ISTHMUS_CHECK(!values.empty() && q >= 0 && q <= 1, "{} values, q {}", values.size(), q);
  std::ranges::sort(values);
  const double place = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(place));
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - std::floor(place)) * (values[above] - values[below]);
}

ErrorStatistics Summarise(std::span<const double> errors) {
  ErrorStatistics statistics{.n = static_cast<int>(errors.size())};
  if (errors.empty()) return statistics;
  std::vector<double> sizes;
  for (const double error : errors) sizes.push_back(std::abs(error));
  statistics.median_abs_error = Quantile(sizes, 0.5);
  statistics.p90_abs_error = Quantile(sizes, 0.9);
  statistics.mean_signed_error = Mean(errors);
  return statistics;
}

std::optional<double> Correlation(std::span<const double> a, std::span<const double> b) {
  ISTHMUS_CHECK(a.size() == b.size(), "{} and {} values", a.size(), b.size());
  if (a.size() < 3) return std::nullopt;
  const double mean_a = Mean(a);
  const double mean_b = Mean(b);
  double product = 0;
  double square_a = 0;
  double square_b = 0;
  for (std::size_t index = 0; index < a.size(); ++index) {
    product += (a[index] - mean_a) * (b[index] - mean_b);
    square_a += (a[index] - mean_a) * (a[index] - mean_a);
    square_b += (b[index] - mean_b) * (b[index] - mean_b);
  }
  if (square_a == 0 || square_b == 0) return std::nullopt;
  return product / std::sqrt(square_a * square_b);
}

}  // namespace isthmus::studies
