#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "plan/model/kernel.h"
#include "profiles/profile.h"
#include "sim/cost/clock.h"

namespace isthmus::sim {

/// Time of an attention core, by implementation, direction, mask and head size.
///
/// Fused implementations (cuDNN, FlashAttention 1-3):
///     t = t0 + FLOP(d') / (r · f · R · s / (s + s0)),   s = max(query, key
///     length)
/// FLOP = 4·sequences·heads·q·k·d', half of it when causal, 2.5 times in the
/// backward; d' is the head size that the kernel computes, the next of the
/// sizes it has (64, 96, 128, 256); f its rate over that at 128. R (FLOP/s) and
/// s0 (tokens: half rate at s = s0) by direction and mask; r is the sustained
/// clock ratio, 1 for the implementations that don't reach the power limit.
///
/// Unfused (two batched products and a softmax in memory; the mask saves
/// nothing):
///     t = launches·t0 + FLOP_full / (share·r·R_gemm) +
///     bytes_per_score·sequences·heads·q·k / B,
/// the backward `backward_factor` times that.
///
/// Source: `attention.<implementation>.*` of the profile, fitted by
/// scripts/fit/fit_kernels.py. Validity: spans 512 to 32768 (measured), longer
/// ones by the curve's limit; residuals 0.6-6 %. Few heads on many SMs cost
/// more than this says. Pinned by tests/unit/sim/attention_model_test.cc;
/// derivation: docs/models/attention.md.
/// Thread-safe: immutable. Cost: tens of nanoseconds.
class AttentionModel {
 public:
  AttentionModel(const profiles::Profile& profile, const SustainedClock& clock);

  /// 0 for no tokens. Throws base::Error if the profile doesn't know the
  /// implementation, or it has no kernel for the head size.
  base::Seconds Time(const plan::Attention& attention) const;

 private:
  struct Curve {
    double rate = 0;       // FLOP/s in a burst
    double half_span = 0;  // tokens
  };
  struct Fused {
    bool known = false;
    bool throttled = false;
    std::array<std::array<Curve, 2>, 2> curves;        // [backward][causal]
    std::vector<std::pair<double, double>> head_dims;  // {size, rate factor}, ascending
  };
  struct Unfused {
    bool known = false;
    bool throttled = false;
    double rate = 0;
    double bytes_per_score = 0;
    double bandwidth = 0;
    double launches = 0;
    double backward_factor = 0;
  };

  static Fused ReadFused(const profiles::Profile& profile, const std::string& name);
  static Unfused ReadUnfused(const profiles::Profile& profile);
  double Ratio(bool throttled, const plan::Attention& attention) const;
  double FusedTime(const Fused& fused, const std::string& name,
                   const plan::Attention& attention) const;
  double UnfusedTime(const plan::Attention& attention) const;

  SustainedClock clock_;
  double latency_ = 0;
  std::array<Fused, 4> fused_;  // kCudnn, kFlash3, kFlash2, kFlash1
  Unfused unfused_;
  std::string profile_name_;
};

}  // namespace isthmus::sim
