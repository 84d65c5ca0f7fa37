#pragma once

#include <cstdint>

#include "base/ids.h"
#include "topology/cluster_spec.h"

namespace isthmus::sim {

/// How long ops take that vary at random (docs/models/jitter.md).
///
///     varied = round(F · alone) + S
///
/// F: the factor, of mean 1 and standard deviation d = TimeVariation::deviation:
/// - lognormal: exp(s·z - s²/2), s² = ln(1 + d²), z standard normal;
/// - exponential: 1 - d + d·e, e exponential of mean 1.
/// S: the stall's time with its probability, else 0. What takes no time has neither.
///
/// Both come from a random stream of the op's own, keyed by (seed, rank, step, op, inner, kind): so
/// they depend on nothing that else runs, and a changed machine meets the same ones. The stall is
/// drawn first, so a scenario with stalls has the factors of the one without. Immutable. Cost:
/// about 0.1 us a call.
class JitterModel {
 public:
  enum class Kind : std::uint8_t { kCompute, kCommunication };
  /// Whose time it is. `inner`: of a P2P op 1 + the number of the transfer in it, else 0.
  struct Key {
    base::Rank rank{0};
    std::int32_t step = 0;
    std::uint32_t op = 0;
    std::uint32_t inner = 0;
  };

  explicit JitterModel(const topology::Jitter& jitter);

  std::int64_t Vary(std::int64_t alone_ps, Kind kind, const Key& key) const;

 private:
  struct Variation {
    const char* stream = "";
    topology::TimeVariation::Distribution distribution{};
    double deviation = 0;
    double sigma = 0;  // of the logarithm
    double stall_probability = 0;
    std::int64_t stall_ps = 0;
  };
  static Variation VariationOf(const topology::TimeVariation& spec, const char* stream);

  std::uint64_t seed_;
  Variation compute_;
  Variation communication_;
};

}  // namespace isthmus::sim
