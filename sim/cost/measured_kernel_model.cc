#include "sim/cost/measured_kernel_model.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/error.h"
#include "profiles/kernel_tables.h"

namespace isthmus::sim {
namespace {

// Norms over heads are measured as norms over a token.
plan::MemoryClass MeasuredClass(plan::MemoryClass memory_class) {
  if (memory_class == plan::MemoryClass::kHeadNorm) return plan::MemoryClass::kNorm;
  if (memory_class == plan::MemoryClass::kHeadNormBackward) return plan::MemoryClass::kNormBackward;
  return memory_class;
}

// The prefixes of all points under `prefix`.
std::set<std::string> TablesUnder(const profiles::Profile& profile, const std::string& prefix) {
  std::set<std::string> tables;
  for (const std::string& key : profile.KeysUnder(prefix))
    tables.insert(key.substr(0, key.rfind('.')));
  return tables;
}

}  // namespace

std::string TableOf(const plan::Gemm& gemm) {
  return fmt::format("gemm.{}", plan::RateKey(gemm.dtype));
}

std::string TableOf(const plan::Attention& attention) {
  return fmt::format("attention.{}.{}.{}", plan::RateKey(attention.dtype),
                     attention.backward ? "backward" : "forward",
                     attention.causal ? "causal" : "full");
}

std::string TableOf(const plan::MemoryBound& kernel) {
  return fmt::format("memory.{}", plan::ToText(MeasuredClass(kernel.memory_class)));
}

MeasuredKernelModel::MeasuredKernelModel(const profiles::Profile& profile)
    : profile_name_(profile.name()),
      prefix_(profiles::KernelTables(profile) + "."),
      dispatch_(profile.Time(prefix_ + "dispatch")) {
  const auto read = [&](const std::string& under, const std::vector<std::string>& axes,
                        const char* unit) {
    for (const std::string& prefix : TablesUnder(profile, under))
      tables_.emplace(prefix, LogTable(profile, prefix, axes, unit));
  };
  read(prefix_ + "gemm.", kGemmAxes, "FLOP/s");
  read(prefix_ + "attention.", kAttentionAxes, "FLOP/s");
  read(prefix_ + "memory.", kMemoryAxes, "B/s");
  for (const char* dtype : {"bf16", "fp32"}) {
    const std::string ratio = fmt::format("clock.{}.ratio", dtype);
    if (!profile.has(ratio)) continue;
    limits_[fmt::format("gemm.{}", dtype)] =
        profile.Number(ratio) * profile.Value(fmt::format("device.peak_rate.{}", dtype), "FLOP/s");
  }
}

double MeasuredKernelModel::RateOf(const std::string& name,
                                   const std::vector<double>& point) const {
  const auto table = tables_.find(prefix_ + name);
  if (table != tables_.end()) return table->second.At(point);
  throw base::Error(fmt::format(
      "error: profile {} has no kernels {}\n  hint: `isthmus calibrate` measures the kinds that it "
      "lists in docs/calibrate.md",
      profile_name_, prefix_ + name));
}

base::Seconds MeasuredKernelModel::Time(const plan::Kernel& kernel) const {
  if (NumLaunches(kernel) == 0) return base::Seconds(0);
  if (const auto* gemm = std::get_if<plan::Gemm>(&kernel)) return Product(*gemm);
  if (const auto* attention = std::get_if<plan::Attention>(&kernel)) return Attend(*attention);
  return Move(std::get<plan::MemoryBound>(kernel));
}

base::Seconds MeasuredKernelModel::LaunchGap(const plan::Kernel& kernel) const {
  const bool is_attention = std::holds_alternative<plan::Attention>(kernel);
  return dispatch_ * (NumLaunches(kernel) * (is_attention ? kAttentionLaunches : 1));
}

base::Seconds MeasuredKernelModel::Product(const plan::Gemm& gemm) const {
  const std::string table = TableOf(gemm);
  double rate = RateOf(table, {static_cast<double>(gemm.m), static_cast<double>(gemm.n),
                               static_cast<double>(gemm.k)});
  const auto limit = limits_.find(table);
  if (limit != limits_.end()) rate = std::min(rate, limit->second);
  return plan::FlopsOf(gemm) / base::FlopsPerSecond(rate);
}

base::Seconds MeasuredKernelModel::Attend(const plan::Attention& attention) const {
  const double span =
      std::sqrt(static_cast<double>(attention.query_len) * static_cast<double>(attention.kv_len));
  const double rate = RateOf(TableOf(attention), {span, static_cast<double>(attention.head_dim)});
  return plan::FlopsOf(attention) / base::FlopsPerSecond(rate);
}

base::Seconds MeasuredKernelModel::Move(const plan::MemoryBound& kernel) const {
  const double per_launch =
      static_cast<double>(kernel.bytes.value()) / std::max(kernel.launches, 1);
  return kernel.bytes / base::BytesPerSecond(RateOf(TableOf(kernel), {per_launch}));
}

}  // namespace isthmus::sim
