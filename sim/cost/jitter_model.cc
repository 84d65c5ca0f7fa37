#include "sim/cost/jitter_model.h"

#include <cmath>

#include <fmt/format.h>

#include "base/hash.h"
#include "base/random.h"
#include "base/sim_time.h"

namespace isthmus::sim {

JitterModel::JitterModel(const topology::Jitter& jitter)
    : seed_(jitter.seed),
      compute_(VariationOf(jitter.compute, "jitter.compute")),
      communication_(VariationOf(jitter.communication, "jitter.communication")) {}

JitterModel::Variation JitterModel::VariationOf(const topology::TimeVariation& spec,
                                                const char* stream) {
  Variation variation{.stream = stream,
                      .distribution = spec.distribution,
                      .deviation = spec.deviation,
                      .sigma = std::sqrt(std::log1p(spec.deviation * spec.deviation))};
  if (spec.stall) {
    variation.stall_probability = spec.stall->probability;
    variation.stall_ps = base::ToPicoseconds(spec.stall->time).value();
  }
  return variation;
}

std::int64_t JitterModel::Vary(std::int64_t alone_ps, Kind kind, const Key& key) const {
  if (alone_ps == 0) return 0;
  const Variation& variation = kind == Kind::kCompute ? compute_ : communication_;
  const std::uint64_t seed = base::HashBuilder(seed_)
                                 .Add(key.rank.value())
                                 .Add(key.step)
                                 .Add(key.op)
                                 .Add(key.inner)
                                 .digest();
  base::RandomStream random(seed, variation.stream);
  const std::int64_t stall = random.Chance(variation.stall_probability) ? variation.stall_ps : 0;
  const auto stalled = [&](std::int64_t varied_ps) {
    return base::Later(varied_ps, stall, [&] {
      return fmt::format("op {} of rank {}, stalled (cluster.jitter),", key.op, key.rank.value());
    });
  };
  if (variation.deviation == 0) return stalled(alone_ps);
  double factor = 0;
  switch (variation.distribution) {
    case topology::TimeVariation::Distribution::kLognormal: {
      const double sigma = variation.sigma;
      factor = std::exp(random.Normal(-sigma * sigma / 2, sigma));
      break;
    }
    case topology::TimeVariation::Distribution::kExponential:
      factor = 1 - variation.deviation - variation.deviation * std::log1p(-random.UniformReal());
      break;
  }
  return stalled(base::RoundPicoseconds(factor * static_cast<double>(alone_ps)));
}

}  // namespace isthmus::sim
