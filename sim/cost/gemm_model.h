#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "plan/model/kernel.h"
#include "profiles/profile.h"
#include "sim/cost/clock.h"

namespace isthmus::sim {

/// Time of one matrix product m × n × k, by tiles, waves and epilogue.
///
///     t = t0 + max(min over tiles T(bm, bn), bytes / B) + phi · output_bytes / B
///
///     T = q(w) · 2·bm·bn·k / (r·R·e / SMs)
///
///     w = ceil(m/bm)·ceil(n/bn) / SMs, waves of tiles
///
///     q(w) = 1 if w <= 1, else (1-lam)·w + lam·ceil(w), waves paid for
///
///     e = e_half ^ log2(128·256 / (bm·bn)), at most 1: small tiles reuse less
///
/// With split-k (s = 2, 4, 8) T(tile)/s with s times the tiles, + s·m·n·8 B / B + 2 us.
/// Symbols: t0 latency (s), R burst rate of the chip on its best tile (FLOP/s),
/// r sustained clock ratio, B memory rate (B/s), phi share of the output's
/// write that no math hides, lam how much of a broken last wave is paid.
/// Source: `gemm.<dtype>.*`, `gemm.tile.*`, `gemm.split_k.*`, `device.num_sms`
/// of the profile, fitted by scripts/fit/fit_kernels.py. dtype is bf16 (fp16 too), fp8, or
/// fp8_promoted for block-scaled products, the only measured kernels that promote. Promoted
/// accumulation with one scale per tensor is the same kernel but for its epilogue, of which no more
/// than `fp8.promoted.max_exposed_epilogue` counts. Validity: m, n, k from 128 to 65536;
/// held out, H100 bf16: median 2.9 %, for m, n, k >= 1024 2.2 %. Pinned by
/// tests/unit/sim/gemm_model_test.cc; derivation: docs/models/gemm.md. Thread-safe: immutable.
/// Cost: some ten tiles and splits, below 1 us.
class GemmModel {
 public:
  GemmModel(const profiles::Profile& profile, const SustainedClock& clock);

  /// 0 for an empty product. Throws base::Error if the profile doesn't know the
  /// data type.
  base::Seconds Time(const plan::Gemm& gemm) const;

 private:
  struct Tile {
    double rows = 0;
    double columns = 0;
  };
  /// Of one data type; rates in SI, in a burst.
  struct Coefficients {
    double rate = 0;
    double latency = 0;
    double bandwidth = 0;
    double epilogue = 0;
    double wave_quantization = 0;
    std::vector<double> tile_efficiency;  // of tiles_, in their order
    double split_tile_efficiency = 0;
    double operand_bytes = 0;
  };

  std::optional<Coefficients> Read(const profiles::Profile& profile, const std::string& name,
                                   plan::DType dtype) const;
  const Coefficients& CoefficientsOf(const plan::Gemm& gemm) const;
  /// Seconds at burst clock.
  double WavesTime(const Coefficients& c, double tiles, double area, double efficiency,
                   double k) const;
  double SplitTime(const Coefficients& c, double ratio, double m, double n, double k) const;

  SustainedClock clock_;
  double num_sms_ = 0;
  std::vector<Tile> tiles_;
  double split_tile_ = 0;
  std::int64_t split_max_parts_ = 0;
  double split_latency_ = 0;
  double split_bytes_ = 0;
  std::optional<Coefficients> bf16_;
  std::optional<Coefficients> fp8_;
  std::optional<Coefficients> fp8_promoted_;
  std::optional<Coefficients> fp8_block_;
  std::string profile_name_;
};

}  // namespace isthmus::sim
