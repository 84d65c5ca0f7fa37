#pragma once

#include <map>
#include <string>
#include <tuple>

#include "profiles/profile.h"
#include "sim/cost/compute_model.h"
#include "sim/cost/log_table.h"

namespace isthmus::sim {

/// Kernels of one thread on a core of a host, as `isthmus calibrate` measured them.
///
///     product        2mnk / rate(m, n, k)                       by data type
///     attention      FLOP / rate(span, head width)              by data type, direction and mask
///     memory-bound   bytes / rate(bytes of a launch)            by class
///
/// and in front of every launch `cpu.dispatch`, the framework's own code; an attention core is made
/// of kCpuAttentionLaunches operations. Rates are LogTables of what was measured, net of dispatch;
/// a memory-bound kernel's falls where its operands leave a cache. span is the geometric mean of
/// the lengths of queries and keys, FLOP plan::FlopsOf's. fp16 takes bf16's tables. Source:
/// `cpu.gemm.<dtype>`, `cpu.attention.<dtype>.<direction>.<mask>`, `cpu.memory.<class>`;
/// docs/models/cpu_host.md; pinned by tests/unit/sim/cpu_host_test.cc. A table is looked for when
/// the first kernel needs it. Thread-safe: immutable.
class CpuKernelModel : public ComputeModel {
 public:
  /// Throws base::Error where a table is no grid.
  explicit CpuKernelModel(const profiles::Profile& profile);

  base::Seconds Time(const plan::Kernel& kernel) const override;
  base::Seconds LaunchGap(const plan::Kernel& kernel) const override;

 private:
  double RateOf(const std::string& prefix, const std::vector<double>& point) const;
  base::Seconds Product(const plan::Gemm& gemm) const;
  base::Seconds Attend(const plan::Attention& attention) const;
  base::Seconds Move(const plan::MemoryBound& kernel) const;

  std::string profile_name_;
  base::Seconds dispatch_;
  std::map<std::string, LogTable> tables_;  // by prefix
};

/// Operations of the backend's attention core, both ways about as many: casts, layout, scores,
/// mask, softmax, products (backend/torch/modules/attention_core.cc).
inline constexpr int kCpuAttentionLaunches = 20;

/// Prefixes of the tables: "cpu.gemm.fp32", "cpu.attention.fp32.forward.causal",
/// "cpu.memory.norm_backward". Their axes: m, n, k; s, d; b.
std::string CpuTable(const plan::Gemm& gemm);
std::string CpuTable(const plan::Attention& attention);
std::string CpuTable(const plan::MemoryBound& kernel);
inline const std::vector<std::string> kCpuGemmAxes = {"m", "n", "k"};
inline const std::vector<std::string> kCpuAttentionAxes = {"s", "d"};
inline const std::vector<std::string> kCpuMemoryAxes = {"b"};

}  // namespace isthmus::sim
