#pragma once

#include <vector>

namespace isthmus::base {

/// The middle one of sorted values, or the mean of the two. Needs at least one.
double Median(std::vector<double> values);

/// Where most values lie: the densest half is taken again and again until two or three are left
/// (Bickel and Fruehwirth 2006, doi:10.1016/j.csda.2005.07.011). For times that only ever get
/// longer by what disturbs them, it is nearer to the undisturbed time than the median. Needs at
/// least one.
double HalfSampleMode(std::vector<double> values);

/// The median of |value / centre - 1|. Needs at least one value and a centre other than 0.
double RelativeSpread(const std::vector<double>& values, double centre);

/// The values nearest to `values` in logarithms that never fall: neighbours that do are pooled into
/// their geometric mean, as often as needed. Needs values above 0.
std::vector<double> NeverFalling(const std::vector<double>& values);

}  // namespace isthmus::base
