#include "base/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/check.h"

namespace isthmus::base {

double Median(std::vector<double> values) {
  ISTHMUS_CHECK(!values.empty());
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double HalfSampleMode(std::vector<double> values) {
  ISTHMUS_CHECK(!values.empty());
  std::ranges::sort(values);
  std::size_t begin = 0;
  std::size_t count = values.size();
  while (count > 3) {
    const std::size_t half = (count + 1) / 2;
    std::size_t best = begin;
    const auto width = [&](std::size_t at) { return values[at + half - 1] - values[at]; };
    for (std::size_t at = begin + 1; at + half <= begin + count; ++at) {
      if (width(at) < width(best)) best = at;
    }
    begin = best;
    count = half;
  }
  if (count == 1) return values[begin];
  if (count == 2) return (values[begin] + values[begin + 1]) / 2;
  const double low = values[begin + 1] - values[begin];
  const double high = values[begin + 2] - values[begin + 1];
  if (low == high) return values[begin + 1];
  return low < high ? (values[begin] + values[begin + 1]) / 2
                    : (values[begin + 1] + values[begin + 2]) / 2;
}

double RelativeSpread(const std::vector<double>& values, double centre) {
  ISTHMUS_CHECK(centre != 0);
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::fabs(value / centre - 1));
  return Median(std::move(distances));
}

std::vector<double> NeverFalling(const std::vector<double>& values) {
  struct Pool {
    double sum = 0;  // of logarithms
    std::size_t count = 0;
    double mean() const { return sum / static_cast<double>(count); }
  };
  std::vector<Pool> pools;
  for (const double value : values) {
    ISTHMUS_CHECK(value > 0, "no logarithm of {}", value);
    pools.push_back({std::log(value), 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
      pools[pools.size() - 2].sum += pools.back().sum;
      pools[pools.size() - 2].count += pools.back().count;
      pools.pop_back();
    }
  }
  std::vector<double> risen;
  for (const Pool& pool : pools) risen.insert(risen.end(), pool.count, std::exp(pool.mean()));
  return risen;
}

}  // namespace isthmus::base
