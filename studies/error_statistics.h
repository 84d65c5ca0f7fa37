#pragma once

#include <optional>
#include <span>
#include <vector>

namespace isthmus::studies {

/// What a set of relative errors (predicted / measured - 1) comes down to; fractions.
struct ErrorStatistics {
  int n = 0;
  // Nothing when n is 0.
  std::optional<double> median_abs_error;
  std::optional<double> p90_abs_error;
  std::optional<double> mean_signed_error;
};
ErrorStatistics Summarise(std::span<const double> errors);

/// The value below which a fraction `q` of `values` lies, linear between neighbours: of n sorted
/// values the one at place q·(n-1), from 0. Needs values and q in [0, 1].
double Quantile(std::vector<double> values, double q);

/// Pearson's correlation; nothing for fewer than three pairs or values that are all the same. Needs
/// equally many of both.
std::optional<double> Correlation(std::span<const double> a, std::span<const double> b);

}  // namespace isthmus::studies
