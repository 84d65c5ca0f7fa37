#include "plan/layout/stage_split.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>

#include "base/check.h"

namespace isthmus::plan {
namespace {

// first, evenly spread, last; nothing if some stage would be left without a layer.
std::optional<std::vector<int>> Split(const PipelineLoad& load, int first, int last) {
  const int between = load.num_stages - 2;
  const int rest = load.num_layers - first - last;
  if (first < 1 || last < 1 || rest < between || (between == 0 && rest != 0)) return std::nullopt;
  std::vector<int> layers{first};
  for (int stage = 0; stage < between; ++stage) {
    layers.push_back(rest / between + (stage < rest % between ? 1 : 0));
  }
  layers.push_back(last);
  return layers;
}

double SlowestStage(const PipelineLoad& load, const std::vector<int>& layers) {
  const double first = static_cast<double>(layers.front()) + load.first_extra;
  const double last = static_cast<double>(layers.back()) + load.last_extra;
  return std::max({first, last, static_cast<double>(std::ranges::max(layers))});
}

int Unevenness(const PipelineLoad& load, const std::vector<int>& layers) {
  const auto distance = [&load](int sum, int stage) {
    return sum + std::abs(stage * load.num_stages - load.num_layers);
  };
  return std::accumulate(layers.begin(), layers.end(), 0, distance);
}

}  // namespace

std::vector<int> BalancedSplit(const PipelineLoad& load) {
  ISTHMUS_CHECK(load.num_stages >= 1 && load.num_layers >= load.num_stages,
                "{} layers on {} stages", load.num_layers, load.num_stages);
  if (load.num_stages == 1) return {load.num_layers};
  std::vector<int> best;
  const int most = load.num_layers / load.num_stages * 2;
  for (int first = 1; first <= most; ++first) {
    for (int last = 1; last <= most; ++last) {
      const auto layers = Split(load, first, last);
      if (!layers) continue;
      if (best.empty()) best = *layers;
      constexpr double kSame = 1e-9;  // rounding of sums of fractions of a layer
      const double gain = SlowestStage(load, best) - SlowestStage(load, *layers);
      const bool is_evener = Unevenness(load, *layers) < Unevenness(load, best);
      if (gain > kSame || (gain > -kSame && is_evener)) best = *layers;
    }
  }
  return best;
}

}  // namespace isthmus::plan
