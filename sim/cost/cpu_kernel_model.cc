#include "sim/cost/cpu_kernel_model.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/error.h"

namespace isthmus::sim {
namespace {

const char* NameOf(plan::MemoryClass memory_class) {
  switch (memory_class) {
    case plan::MemoryClass::kElementwise:
      return "elementwise";
    case plan::MemoryClass::kNorm:
    case plan::MemoryClass::kHeadNorm:
      return "norm";
    case plan::MemoryClass::kNormBackward:
    case plan::MemoryClass::kHeadNormBackward:
      return "norm_backward";
    case plan::MemoryClass::kCast:
      return "cast";
    case plan::MemoryClass::kCrossEntropy:
      return "cross_entropy";
    case plan::MemoryClass::kOptimizer:
      return "optimizer";
  }
  return "";
}

// The prefixes of all points under `prefix`.
std::set<std::string> TablesUnder(const profiles::Profile& profile, const std::string& prefix) {
  std::set<std::string> tables;
  for (const std::string& key : profile.KeysUnder(prefix))
    tables.insert(key.substr(0, key.rfind('.')));
  return tables;
}

}  // namespace

std::string CpuTable(const plan::Gemm& gemm) {
  return fmt::format("cpu.gemm.{}", plan::RateKey(gemm.dtype));
}

std::string CpuTable(const plan::Attention& attention) {
  return fmt::format("cpu.attention.{}.{}.{}", plan::RateKey(attention.dtype),
                     attention.backward ? "backward" : "forward",
                     attention.causal ? "causal" : "full");
}

std::string CpuTable(const plan::MemoryBound& kernel) {
  return fmt::format("cpu.memory.{}", NameOf(kernel.memory_class));
}

CpuKernelModel::CpuKernelModel(const profiles::Profile& profile)
    : profile_name_(profile.name()), dispatch_(profile.Time("cpu.dispatch")) {
  const auto read = [&](const std::string& under, const std::vector<std::string>& axes,
                        const char* unit) {
    for (const std::string& prefix : TablesUnder(profile, under))
      tables_.emplace(prefix, LogTable(profile, prefix, axes, unit));
  };
  read("cpu.gemm.", kCpuGemmAxes, "FLOP/s");
  read("cpu.attention.", kCpuAttentionAxes, "FLOP/s");
  read("cpu.memory.", kCpuMemoryAxes, "B/s");
}

double CpuKernelModel::RateOf(const std::string& prefix, const std::vector<double>& point) const {
  const auto table = tables_.find(prefix);
  if (table != tables_.end()) return table->second.At(point);
  throw base::Error(fmt::format(
      "error: profile {} has no kernels {}\n  hint: `isthmus calibrate` measures the kinds that it "
      "lists in docs/calibrate.md",
      profile_name_, prefix));
}

base::Seconds CpuKernelModel::Time(const plan::Kernel& kernel) const {
  if (NumLaunches(kernel) == 0) return base::Seconds(0);
  if (const auto* gemm = std::get_if<plan::Gemm>(&kernel)) return Product(*gemm);
  if (const auto* attention = std::get_if<plan::Attention>(&kernel)) return Attend(*attention);
  return Move(std::get<plan::MemoryBound>(kernel));
}

base::Seconds CpuKernelModel::LaunchGap(const plan::Kernel& kernel) const {
  const bool is_attention = std::holds_alternative<plan::Attention>(kernel);
  return dispatch_ * (NumLaunches(kernel) * (is_attention ? kCpuAttentionLaunches : 1));
}

base::Seconds CpuKernelModel::Product(const plan::Gemm& gemm) const {
  const double rate = RateOf(
      CpuTable(gemm),
      {static_cast<double>(gemm.m), static_cast<double>(gemm.n), static_cast<double>(gemm.k)});
  return plan::FlopsOf(gemm) / base::FlopsPerSecond(rate);
}

base::Seconds CpuKernelModel::Attend(const plan::Attention& attention) const {
  const double span =
      std::sqrt(static_cast<double>(attention.query_len) * static_cast<double>(attention.kv_len));
  const double rate = RateOf(CpuTable(attention), {span, static_cast<double>(attention.head_dim)});
  return plan::FlopsOf(attention) / base::FlopsPerSecond(rate);
}

base::Seconds CpuKernelModel::Move(const plan::MemoryBound& kernel) const {
  const double per_launch =
      static_cast<double>(kernel.bytes.value()) / std::max(kernel.launches, 1);
  return kernel.bytes / base::BytesPerSecond(RateOf(CpuTable(kernel), {per_launch}));
}

}  // namespace isthmus::sim
