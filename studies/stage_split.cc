#include "studies/stage_split.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>

#include "base/check.h"

namespace isthmus::studies {
namespace {

// first, evenly spread, last; nothing if some stage would be left without a layer.
std::optional<std::vector<std::int64_t>> Split(const PipelineLoad& load, std::int64_t first,
                                               std::int64_t last) {
  const std::int64_t between = load.num_stages - 2;
  const std::int64_t rest = load.num_layers - first - last;
  if (first < 1 || last < 1 || rest < between || (between == 0 && rest != 0)) return std::nullopt;
  std::vector<std::int64_t> layers{first};
  for (std::int64_t stage = 0; stage < between; ++stage) {
    layers.push_back(rest / between + (stage < rest % between ? 1 : 0));
  }
  layers.push_back(last);
  return layers;
}

double SlowestStage(const PipelineLoad& load, const std::vector<std::int64_t>& layers) {
  const double first = static_cast<double>(layers.front()) + load.first_extra;
  const double last = static_cast<double>(layers.back()) + load.last_extra;
  return std::max({first, last, static_cast<double>(std::ranges::max(layers))});
}

std::int64_t Unevenness(const PipelineLoad& load, const std::vector<std::int64_t>& layers) {
  const auto distance = [&load](std::int64_t sum, std::int64_t stage) {
    return sum + std::abs(stage * load.num_stages - load.num_layers);
  };
  return std::accumulate(layers.begin(), layers.end(), std::int64_t{0}, distance);
}

}  // namespace

std::vector<std::int64_t> BalancedSplit(const PipelineLoad& load) {
  ISTHMUS_CHECK(load.num_stages >= 1 && load.num_layers >= load.num_stages,
                "{} layers on {} stages", load.num_layers, load.num_stages);
  if (load.num_stages == 1) return {load.num_layers};
  std::vector<std::int64_t> best;
  const std::int64_t most = load.num_layers / load.num_stages * 2;
  for (std::int64_t first = 1; first <= most; ++first) {
    for (std::int64_t last = 1; last <= most; ++last) {
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

}  // namespace isthmus::studies
