#include "backend/torch/measure/measure.h"

#include <ATen/Parallel.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include <fmt/format.h>

#include "backend/torch/comm/communicators.h"
#include "backend/torch/comm/words.h"
#include "backend/torch/device/device.h"
#include "backend/torch/measure/comm_cases.h"
#include "backend/torch/measure/device_cases.h"
#include "backend/torch/measure/kernel_cases.h"
#include "backend/torch/measure/stopwatch.h"
#include "backend/torch/start/rank_store.h"
#include "base/error.h"

namespace isthmus::backend {
namespace {

using traces::MeasuredRow;

constexpr double kBudget = 40e-3;
constexpr double kQuickBudget = 12e-3;
constexpr double kBusyBudget = 0.25;

// The group of `size` neighbours that the rank is in.
std::unique_ptr<Communicator> MakeGroup(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                        int size, BackendFactory& factory) {
  const int first = rank / size * size;
  std::vector<base::Rank> members;
  for (int member = 0; member < size; ++member) members.emplace_back(first + member);
  const std::string name = fmt::format("ranks {} to {}", first, first + size - 1);
  const auto own = c10::make_intrusive<c10d::PrefixStore>(name, store);
  return std::make_unique<Communicator>(name, std::move(members), base::Rank(rank),
                                        factory.Make(own, rank - first, size));
}

MeasuringRanks MakeRanks(const MeasureOptions& options,
                         const c10::intrusive_ptr<c10d::Store>& store) {
  MeasuringRanks ranks{.rank = options.environment.rank,
                       .num_ranks = options.environment.world_size};
  GlooFactory factory(options.timeout);
  const auto all = c10::make_intrusive<c10d::PrefixStore>("all", store);
  ranks.all = MakeGroup(all, ranks.rank, ranks.num_ranks, factory);
  for (int size = 2; size <= ranks.num_ranks; size *= 2) {
    const bool is_in_one = ranks.rank < ranks.num_ranks / size * size;
    if (is_in_one) ranks.parts.push_back(MakeGroup(store, ranks.rank, size, factory));
  }
  return ranks;
}

MeasuredRow Measure(const KernelCase& one, double budget_s) {
  const at::NoGradGuard no_grad;
  const std::function<void()> run = one.prepare();
  Samples samples = TimeOnThread(run, budget_s);
  for (double& value : samples.values) value /= one.times;
  return samples.ToRow(one.table, one.point, one.held_out);
}

// Resident memory of this process.
MeasuredRow ProcessSize() {
  std::int64_t total = 0;
  std::int64_t resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return {.table = "process",
          .value = static_cast<double>(resident * sysconf(_SC_PAGESIZE)),
          .num_samples = 1};
}

std::vector<MeasuredRow> MeasureKernels(bool quick) {
  const double budget = quick ? kQuickBudget : kBudget;
  std::vector<MeasuredRow> rows = {ProcessSize()};
  for (const KernelCase& one : {DispatchCase(at::kCPU), OpIssueCase(at::kCPU), CopyCase()})
    rows.push_back(Measure(one, kBudget));
  for (const KernelCase& one : KernelCases(at::kCPU, HostGrid(quick)))
    rows.push_back(Measure(one, budget));
  return rows;
}

// The first k ranks at once, for k up to all: processor time of a rank's work, the mean over them.
std::vector<MeasuredRow> MeasureBusy(const MeasuringRanks& ranks) {
  std::vector<MeasuredRow> rows;
  const KernelCase work = BusyCase(at::kCPU);
  for (int busy = 1; busy <= ranks.num_ranks; ++busy) {
    ranks.Meet();
    MeasuredRow row{.table = "busy"};
    if (ranks.rank < busy) row = Measure(work, kBusyBudget);
    row.value = ranks.Mean(ranks.rank < busy ? row.value : 0) * ranks.num_ranks / busy;
    row.point = fmt::format("k{}", busy);
    rows.push_back(row);
  }
  return rows;
}

// All ranks on one GPU, so that they talk over Gloo through the host.
std::unique_ptr<Device> OpenSharedGpu(const MeasureOptions& options) {
  return MakeGpuDevice({.timeout = options.timeout,
                        .each_has_its_own = [](const std::string& /*gpu*/) { return false; }});
}

DevicePlan PlanOf(bool quick) {
  DevicePlan plan{.grid = GpuGrid(quick)};
  if (quick) plan.clock_s = 5;
  return plan;
}

void Append(std::vector<MeasuredRow> more, std::vector<MeasuredRow>& rows) {
  rows.insert(rows.end(), std::make_move_iterator(more.begin()),
              std::make_move_iterator(more.end()));
}

std::vector<MeasuredRow> MeasureHost(const MeasuringRanks& ranks, bool quick) {
  std::vector<MeasuredRow> rows;
  if (ranks.rank == 0) rows = MeasureKernels(quick);
  ranks.Meet();
  Append(MeasureBusy(ranks), rows);
  Append(MeasureCommunication(ranks, quick), rows);
  return rows;
}

std::vector<MeasuredRow> MeasureGpu(const MeasuringRanks& ranks, const MeasureOptions& options,
                                    const c10::intrusive_ptr<c10d::Store>& store) {
  const std::unique_ptr<Device> device = OpenSharedGpu(options);
  std::vector<std::unique_ptr<Communicator>> parts;
  const auto staged = c10::make_intrusive<c10d::PrefixStore>("staged", store);
  for (const auto& part : ranks.parts)
    parts.push_back(MakeGroup(staged, ranks.rank, part->size(), device->communicators()));
  std::vector<MeasuredRow> rows;
  if (ranks.rank == 0) {
    rows = MeasureDevice(*device, PlanOf(options.quick));
    std::string versions = device->description();
    std::replace(versions.begin(), versions.end(), ',', ';');  // a cell of a table
    rows.push_back({.table = "versions", .point = versions});
  }
  ranks.Meet();
  Append(MeasureCommunication(ranks, options.quick), rows);
  Append(MeasureStaged(ranks, parts, *device), rows);
  return rows;
}

}  // namespace

std::vector<MeasuredRow> MeasureMachine(const MeasureOptions& options) {
  at::set_num_threads(1);
  at::set_num_interop_threads(1);
  const auto store = OpenStore(options.environment, options.timeout);
  try {
    const MeasuringRanks ranks = MakeRanks(options, store);
    std::vector<MeasuredRow> rows = options.device == DeviceKind::kCpu
                                        ? MeasureHost(ranks, options.quick)
                                        : MeasureGpu(ranks, options, store);
    ranks.Meet();
    if (ranks.rank != 0) return {};
    if (options.device == DeviceKind::kCpu)
      rows.push_back(
          {.table = "versions", .point = fmt::format("torch {} with gloo", TORCH_VERSION)});
    return rows;
  } catch (const c10::Error& error) {
    throw base::IoError(fmt::format("measuring: {}", WordsOf(error)));
  }
}

}  // namespace isthmus::backend
