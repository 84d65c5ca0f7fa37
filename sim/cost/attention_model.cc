#include "sim/cost/attention_model.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include <fmt/core.h>

#include "base/check.h"
#include "base/error.h"

namespace isthmus::sim {
namespace {

constexpr std::array<const char*, 4> kFusedNames = {"cudnn", "flash3", "flash2", "flash1"};
constexpr std::array<const char*, 2> kDirections = {"forward", "backward"};
constexpr std::array<const char*, 2> kMasks = {"full", "causal"};
static_assert(static_cast<int>(plan::AttentionKernel::kCudnn) == 0);
static_assert(static_cast<int>(plan::AttentionKernel::kFlash3) == 1);
static_assert(static_cast<int>(plan::AttentionKernel::kFlash2) == 2);
static_assert(static_cast<int>(plan::AttentionKernel::kFlash1) == 3);

double Positive(const profiles::Profile& profile, const std::string& key, double value) {
  if (value > 0) return value;
  throw base::Error(
      fmt::format("error: parameter {} of profile {} must be positive", key, profile.name()));
}

double Scores(const plan::Attention& a) {
  return static_cast<double>(a.num_sequences) * static_cast<double>(a.heads) *
         static_cast<double>(a.query_len) * static_cast<double>(a.kv_len);
}

}  // namespace

AttentionModel::AttentionModel(const profiles::Profile& profile, const SustainedClock& clock)
    : clock_(clock),
      latency_(profile.Time("attention.latency").value()),
      profile_name_(profile.name()) {
  for (std::size_t kernel = 0; kernel < kFusedNames.size(); ++kernel) {
    const std::string name = std::string("attention.") + kFusedNames[kernel];
    // Which implementations a profile knows is told by their curves; the
    // software profile holds a `throttled` for all of them.
    if (!profile.has(name + ".forward.causal.rate")) continue;
    fused_[kernel] = ReadFused(profile, name);
  }
  if (profile.has("attention.unfused.gemm_share")) {
    unfused_ = ReadUnfused(profile);
  }
}

AttentionModel::Fused AttentionModel::ReadFused(const profiles::Profile& profile,
                                                const std::string& name) {
  Fused fused;
  fused.known = true;
  fused.throttled = profile.Number(name + ".throttled") != 0;
  for (std::size_t backward = 0; backward < 2; ++backward) {
    for (std::size_t causal = 0; causal < 2; ++causal) {
      const std::string key = fmt::format("{}.{}.{}", name, kDirections[backward], kMasks[causal]);
      Curve& curve = fused.curves[backward][causal];
      curve.rate = Positive(profile, key + ".rate", profile.Rate(key + ".rate").value());
      curve.half_span = profile.Number(key + ".half_span");
    }
  }
  const std::string prefix = name + ".head_dim.";
  for (const std::string& key : profile.KeysUnder(prefix)) {
    const std::string_view text = std::string_view(key).substr(prefix.size());
    int size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || end != text.data() + text.size() || size <= 0) {
      throw base::Error(fmt::format("error: parameter {} does not name a head size", key));
    }
    fused.head_dims.emplace_back(size, Positive(profile, key, profile.Number(key)));
  }
  std::sort(fused.head_dims.begin(),
            fused.head_dims.end());  // keys sort as text: 128 before 64
  return fused;
}

AttentionModel::Unfused AttentionModel::ReadUnfused(const profiles::Profile& profile) {
  Unfused unfused;
  unfused.known = true;
  unfused.throttled = profile.Number("attention.unfused.throttled") != 0;
  unfused.rate =
      profile.Number("attention.unfused.gemm_share") * profile.Rate("gemm.bf16.peak_rate").value();
  unfused.bytes_per_score = profile.Value("attention.unfused.bytes_per_score", "B");
  unfused.bandwidth = profile.Number("memory.elementwise.efficiency") *
                      profile.Bandwidth("device.memory_bandwidth").value();
  unfused.launches = profile.Number("attention.unfused.launches");
  unfused.backward_factor = profile.Number("attention.unfused.backward_factor");
  return unfused;
}

double AttentionModel::Ratio(bool throttled, const plan::Attention& attention) const {
  return throttled ? clock_.Ratio(attention) : 1.0;
}

base::Seconds AttentionModel::Time(const plan::Attention& attention) const {
  ISTHMUS_CHECK(attention.head_dim > 0 && attention.num_sequences >= 0 &&
                attention.query_len >= 0 && attention.kv_len >= 0 && attention.heads >= 0);
  if (Scores(attention) == 0) return base::Seconds(0);
  if (attention.kernel == plan::AttentionKernel::kUnfused)
    return base::Seconds(UnfusedTime(attention));
  const auto index = static_cast<std::size_t>(attention.kernel);
  const Fused& fused = fused_[index];
  if (!fused.known) {
    throw base::Error(
        fmt::format("error: profile {} has no parameters "
                    "attention.{}.*: this attention kernel "
                    "is not known for this GPU",
                    profile_name_, kFusedNames[index]));
  }
  return base::Seconds(FusedTime(fused, kFusedNames[index], attention));
}

double AttentionModel::FusedTime(const Fused& fused, const std::string& name,
                                 const plan::Attention& attention) const {
  const auto size = std::find_if(
      fused.head_dims.begin(), fused.head_dims.end(),
      [&](const auto& entry) { return entry.first >= static_cast<double>(attention.head_dim); });
  if (size == fused.head_dims.end()) {
    throw base::Error(
        fmt::format("error: attention kernel {} has no head size "
                    "of {} or more in profile {}",
                    name, attention.head_dim, profile_name_));
  }
  const Curve& curve = fused.curves[attention.backward ? 1 : 0][attention.causal ? 1 : 0];
  const double flops = 4 * Scores(attention) * size->first * (attention.causal ? 0.5 : 1.0) *
                       (attention.backward ? 2.5 : 1.0);
  const double rate = curve.rate * size->second * Ratio(fused.throttled, attention);
  const auto span = static_cast<double>(std::max(attention.query_len, attention.kv_len));
  return latency_ + flops * (span + curve.half_span) / (span * rate);
}

double AttentionModel::UnfusedTime(const plan::Attention& attention) const {
  if (!unfused_.known) {
    throw base::Error(fmt::format("error: profile {} has no parameter attention.unfused.gemm_share",
                                  profile_name_));
  }
  const double flops = 4 * Scores(attention) * static_cast<double>(attention.head_dim);
  const double forward = unfused_.launches * latency_ +
                         flops / (unfused_.rate * Ratio(unfused_.throttled, attention)) +
                         unfused_.bytes_per_score * Scores(attention) / unfused_.bandwidth;
  return attention.backward ? unfused_.backward_factor * forward : forward;
}

}  // namespace isthmus::sim
