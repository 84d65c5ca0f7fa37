#pragma once

#include <map>
#include <string>
#include <tuple>

#include "profiles/profile.h"
#include "sim/cost/compute_model.h"
#include "sim/cost/log_table.h"

namespace isthmus::sim {

/// Kernels of one thread on a core of a host, or of one process on a GPU, as `isthmus calibrate`
/// measured them.
///
///     product        2mnk / rate(m, n, k)                       by data type
///     attention      FLOP / rate(span, head width)              by data type, direction and mask
///     memory-bound   bytes / rate(bytes of a launch)            by class
///
/// and in front of every launch `cpu.dispatch` or `gpu.dispatch`, the framework's own code; an
/// attention core is made of kAttentionLaunches operations. Rates are LogTables of what was
/// measured, net of dispatch, so that times are met on the grid also where a GPU's host is far
/// ahead; a memory-bound kernel's falls where its operands leave a cache. span is the geometric
/// mean of the lengths of queries and keys, FLOP plan::FlopsOf's. fp16 takes bf16's tables. Where
/// the profile says how fast products stay when they run for a minute, no product is faster:
///
///     rate <= clock.<dtype>.ratio · device.peak_rate.<dtype>
///
/// Source: `<cpu|gpu>.gemm.<dtype>`, `.attention.<dtype>.<direction>.<mask>`, `.memory.<class>`;
/// docs/models/cpu_host.md; pinned by tests/unit/sim/cpu_host_test.cc and gpu_fit_test.cc. A table
/// is looked for when the first kernel needs it. Thread-safe: immutable.
class MeasuredKernelModel : public ComputeModel {
 public:
  /// Throws base::Error where a table is no grid.
  explicit MeasuredKernelModel(const profiles::Profile& profile);

  base::Seconds Time(const plan::Kernel& kernel) const override;
  base::Seconds LaunchGap(const plan::Kernel& kernel) const override;

 private:
  double RateOf(const std::string& name, const std::vector<double>& point) const;
  base::Seconds Product(const plan::Gemm& gemm) const;
  base::Seconds Attend(const plan::Attention& attention) const;
  base::Seconds Move(const plan::MemoryBound& kernel) const;

  std::string profile_name_;
  std::string prefix_;  // "cpu.", "gpu."
  base::Seconds dispatch_;
  std::map<std::string, LogTable> tables_;  // by prefix of their points
  std::map<std::string, double> limits_;    // FLOP/s, by table of products; where there are
};

/// Operations of the backend's attention core, both ways about as many: casts, layout, scores,
/// mask, softmax, products (backend/torch/modules/attention_core.cc).
inline constexpr int kAttentionLaunches = 20;

/// Names of the tables: "gemm.fp32", "attention.fp32.forward.causal", "memory.norm_backward". Their
/// axes: m, n, k; s, d; b.
std::string TableOf(const plan::Gemm& gemm);
std::string TableOf(const plan::Attention& attention);
std::string TableOf(const plan::MemoryBound& kernel);
inline const std::vector<std::string> kGemmAxes = {"m", "n", "k"};
inline const std::vector<std::string> kAttentionAxes = {"s", "d"};
inline const std::vector<std::string> kMemoryAxes = {"b"};

}  // namespace isthmus::sim
