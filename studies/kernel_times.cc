#include "studies/kernel_times.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "profiles/kernel_tables.h"
#include "sim/cost/machine_models.h"
#include "sim/cost/measured_kernel_model.h"
#include "studies/internal/work_counts.h"

namespace isthmus::studies {
namespace {

struct Naming {
  std::string shape;
  std::string residual;
};

Naming NamesOf(const plan::Gemm& gemm) {
  const bool is_fp8 = gemm.dtype == plan::DType::kFp8;
  const bool is_promoted = gemm.promoted_accumulation || gemm.block_scaled;
  const char* table = !is_fp8 ? "bf16" : is_promoted ? "fp8_promoted" : "fp8";
  return {fmt::format("{} {} x {} x {}", plan::ToText(gemm.dtype), gemm.m, gemm.n, gemm.k),
          fmt::format("gemm.{}.peak_rate", table)};
}

Naming NamesOf(const plan::Attention& attention) {
  const char* kernel = plan::ToText(attention.kernel);
  return {
      fmt::format("{} {} x {} heads, {} x {}{}", kernel, attention.num_sequences, attention.heads,
                  attention.query_len, attention.kv_len, attention.causal ? " causal" : ""),
      fmt::format("attention.{}.{}.{}.rate", kernel, attention.backward ? "backward" : "forward",
                  attention.causal ? "causal" : "full")};
}

Naming NamesOf(const plan::MemoryBound& memory) {
  const char* name = plan::ToText(memory.memory_class);
  constexpr double kMebibyte = 1024.0 * 1024.0;
  return {fmt::format("{} {:.1f} MiB", name, static_cast<double>(memory.bytes.value()) / kMebibyte),
          fmt::format("memory.{}.efficiency", name)};
}

// Sums kernels by segment and shape.
class Tally {
 public:
  explicit Tally(const profiles::Profile& profile)
      : model_(sim::MakeComputeModel(profile)), tables_(profiles::KernelTables(profile)) {}

  void Add(const plan::Work& work, std::int64_t times) {
    for (const plan::RepeatedSegments& part : work.parts) {
      for (const plan::Segment& segment : part.segments) {
        for (const plan::Kernel& kernel : segment.kernels) Add(segment, kernel, times * part.count);
      }
    }
  }

  std::vector<KernelTime> Take() {
    std::vector<KernelTime> times;
    for (auto& [key, time] : times_) times.push_back(std::move(time));
    std::ranges::stable_sort(
        times, [](const KernelTime& a, const KernelTime& b) { return a.seconds > b.seconds; });
    return times;
  }

 private:
  void Add(const plan::Segment& segment, const plan::Kernel& kernel, std::int64_t count) {
    if (sim::NumLaunches(kernel) == 0) return;
    Naming names = std::visit([](const auto& shape) { return NamesOf(shape); }, kernel);
    KernelTime& time = times_[{segment.name, names.shape}];
    if (time.count == 0) {
      time.segment = segment.name;
      time.shape = std::move(names.shape);
      time.residual =
          tables_.empty()
              ? std::move(names.residual)
              : std::visit(
                    [this](const auto& of) { return tables_ + "." + sim::TableOf(of) + ".check"; },
                    kernel);
    }
    time.count += count;
    time.seconds += static_cast<double>(count) * model_->Time(kernel).value();
  }

  std::unique_ptr<sim::ComputeModel> model_;
  std::string tables_;  // profiles::KernelTables()
  std::map<std::pair<std::string, std::string>, KernelTime> times_;
};

double Sum(const std::vector<KernelTime>& times) {
  double sum = 0;
  for (const KernelTime& time : times) sum += time.seconds;
  return sum;
}

}  // namespace

std::vector<KernelTime> KernelTimes(const plan::Program& program,
                                    const profiles::Profile& profile) {
  std::vector<KernelTime> longest;
  for (const internal::WorkCounts& counts : internal::CountWorks(program)) {
    Tally tally(profile);
    for (const auto& [work, times] : counts) tally.Add(program.works[work], times);
    std::vector<KernelTime> times = tally.Take();
    if (Sum(times) > Sum(longest)) longest = std::move(times);
  }
  return longest;
}

}  // namespace isthmus::studies
