#include "sim/cost/gemm_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/core.h>

#include "base/check.h"
#include "base/error.h"

namespace isthmus::sim {
namespace {

// The tile whose efficiency is 1: the largest of the vendor library, 128 × 256.
constexpr double kReferenceArea = 128.0 * 256.0;
constexpr std::string_view kTilePrefix = "gemm.tile.";
constexpr std::string_view kPromotedEpilogue = "fp8.promoted.max_exposed_epilogue";

double TileEfficiency(double half_tile_efficiency, double area) {
  return std::pow(half_tile_efficiency, std::max(0.0, std::log2(kReferenceArea / area)));
}

/// "128x256" -> {128, 256}.
std::pair<double, double> ParseTile(const std::string& key) {
  const std::string text = key.substr(kTilePrefix.size());
  const std::size_t cross = text.find('x');
  const auto is_number = [](const std::string& part) {
    return !part.empty() && part.size() <= 5 &&
           std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  if (cross != std::string::npos) {
    const std::string rows = text.substr(0, cross);
    const std::string columns = text.substr(cross + 1);
    if (is_number(rows) && is_number(columns) && std::stoi(rows) > 0 && std::stoi(columns) > 0) {
      return {std::stod(rows), std::stod(columns)};
    }
  }
  throw base::Error(
      fmt::format("error: parameter {} does not name a tile such as gemm.tile.128x256", key));
}

}  // namespace

GemmModel::GemmModel(const profiles::Profile& profile, const SustainedClock& clock)
    : clock_(clock),
      num_sms_(static_cast<double>(profile.Count("device.num_sms"))),
      split_tile_(profile.Number("gemm.split_k.tile")),
      split_max_parts_(profile.Count("gemm.split_k.max_parts")),
      split_latency_(profile.Time("gemm.split_k.latency").value()),
      split_bytes_(profile.Value("gemm.split_k.bytes_per_output", "B")),
      profile_name_(profile.name()) {
  for (const std::string& key : profile.KeysUnder(kTilePrefix)) {
    if (profile.Number(key) == 0) continue;  // the way to take an included tile out
    const auto [rows, columns] = ParseTile(key);
    tiles_.push_back({rows, columns});
  }
  if (tiles_.empty()) {
    throw base::Error(
        fmt::format("error: profile {} names no tile (gemm.tile.128x256 …)", profile.name()));
  }
  bf16_ = Read(profile, "bf16", plan::DType::kBf16);
  fp8_ = Read(profile, "fp8", plan::DType::kFp8);
  fp8_block_ = Read(profile, "fp8_promoted", plan::DType::kFp8);
  fp8_promoted_ = fp8_block_;
  if (fp8_promoted_) {
    fp8_promoted_->epilogue = std::min(fp8_promoted_->epilogue, profile.Number(kPromotedEpilogue));
  }
}

std::optional<GemmModel::Coefficients> GemmModel::Read(const profiles::Profile& profile,
                                                       const std::string& name,
                                                       plan::DType dtype) const {
  const std::string prefix = "gemm." + name;
  if (profile.KeysUnder(prefix + ".").empty()) return std::nullopt;
  Coefficients c;
  c.rate = profile.Rate(prefix + ".peak_rate").value();
  c.latency = profile.Time(prefix + ".latency").value();
  c.bandwidth = profile.Bandwidth(prefix + ".memory_bandwidth").value();
  c.epilogue = profile.Number(prefix + ".exposed_epilogue");
  c.wave_quantization = profile.Number(prefix + ".wave_quantization");
  const double half_tile_efficiency = profile.Number(prefix + ".half_tile_efficiency");
  c.operand_bytes = static_cast<double>(plan::BytesOf(dtype).value());
  if (!(c.rate > 0 && c.bandwidth > 0 && half_tile_efficiency > 0)) {
    throw base::Error(fmt::format("error: the rates {}.* of profile {} must be positive", prefix,
                                  profile.name()));
  }
  for (const Tile& tile : tiles_) {
    c.tile_efficiency.push_back(TileEfficiency(half_tile_efficiency, tile.rows * tile.columns));
  }
  c.split_tile_efficiency = TileEfficiency(half_tile_efficiency, split_tile_ * split_tile_);
  return c;
}

const GemmModel::Coefficients& GemmModel::CoefficientsOf(const plan::Gemm& gemm) const {
  const std::optional<Coefficients>* found = nullptr;
  const char* name = plan::RateKey(gemm.dtype);
  switch (gemm.dtype) {
    case plan::DType::kBf16:
    case plan::DType::kFp16:  // the same tensor-core rate
      found = &bf16_;
      break;
    case plan::DType::kFp8:
      found = gemm.block_scaled ? &fp8_block_ : gemm.promoted_accumulation ? &fp8_promoted_ : &fp8_;
      if (gemm.block_scaled || gemm.promoted_accumulation) name = "fp8_promoted";
      break;
    case plan::DType::kFp32:
    case plan::DType::kFp64:
      break;
  }
  if (found == nullptr || !*found) {
    throw base::Error(
        fmt::format("error: profile {} has no parameters "
                    "gemm.{}.*: matrix products in {} are not "
                    "known for this GPU",
                    profile_name_, name, name));
  }
  return **found;
}

double GemmModel::WavesTime(const Coefficients& c, double tiles, double area, double efficiency,
                            double k) const {
  const double waves = tiles / num_sms_;
  const double paid =
      waves <= 1 ? 1.0 : (1 - c.wave_quantization) * waves + c.wave_quantization * std::ceil(waves);
  return paid * 2 * area * k * num_sms_ / (c.rate * efficiency);
}

double GemmModel::SplitTime(const Coefficients& c, double ratio, double m, double n,
                            double k) const {
  double best = std::numeric_limits<double>::infinity();
  const double tiles = std::ceil(m / split_tile_) * std::ceil(n / split_tile_);
  for (std::int64_t parts = 2; parts <= split_max_parts_; parts *= 2) {
    const auto s = static_cast<double>(parts);
    const double math =
        WavesTime(c, tiles * s, split_tile_ * split_tile_, c.split_tile_efficiency, k / s);
    best = std::min(best, math / ratio + s * m * n * split_bytes_ / c.bandwidth + split_latency_);
  }
  return best;
}

base::Seconds GemmModel::Time(const plan::Gemm& gemm) const {
  ISTHMUS_CHECK(gemm.m >= 0 && gemm.n >= 0 && gemm.k >= 0, "gemm {} x {} x {}", gemm.m, gemm.n,
                gemm.k);
  if (gemm.m == 0 || gemm.n == 0 || gemm.k == 0) return base::Seconds(0);
  const Coefficients& c = CoefficientsOf(gemm);
  const auto m = static_cast<double>(gemm.m);
  const auto n = static_cast<double>(gemm.n);
  const auto k = static_cast<double>(gemm.k);
  const auto output_bytes = static_cast<double>(gemm.output_bytes.value());

  const double ratio = clock_.Ratio(gemm);
  double math = SplitTime(c, ratio, m, n, k);
  for (std::size_t i = 0; i < tiles_.size(); ++i) {
    const Tile& tile = tiles_[i];
    const double tiles = std::ceil(m / tile.rows) * std::ceil(n / tile.columns);
    const double burst = WavesTime(c, tiles, tile.rows * tile.columns, c.tile_efficiency[i], k);
    math = std::min(math, burst / ratio);
  }
  const double memory = (c.operand_bytes * (m * k + n * k) + output_bytes) / c.bandwidth;
  return base::Seconds(c.latency + std::max(math, memory) +
                       c.epilogue * output_bytes / c.bandwidth);
}

}  // namespace isthmus::sim
