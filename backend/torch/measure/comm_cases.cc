#include "backend/torch/measure/comm_cases.h"

#include <algorithm>
#include <functional>
#include <thread>

#include <fmt/format.h>

#include "backend/torch/measure/stopwatch.h"
#include "base/statistics.h"

namespace isthmus::backend {
namespace {

using plan::CollectiveKind;
using traces::MeasuredRow;

/// One call of a collective or exchange, by all members.
struct CommCase {
  std::string table;
  std::int64_t bytes = 0;
  bool held_out = false;
  int times = 1;  // messages a call stands for
  std::function<void()> run;
};

std::function<void()> MakeRun(Communicator& group, CollectiveKind kind, std::int64_t bytes,
                              at::Device device = at::kCPU) {
  const std::int64_t n = group.size();
  const std::int64_t part = std::max<std::int64_t>(bytes / 4 / n, 1);
  const at::Tensor whole = at::ones({part * n}, device);
  const at::Tensor own = at::ones({part}, device);
  const at::Tensor other = at::ones({part * n}, device);
  switch (kind) {
    case CollectiveKind::kAllGather:
      return [=, &group] { group.AllGather(whole, own).Wait(); };
    case CollectiveKind::kReduceScatter:
      return [=, &group] { group.ReduceScatter(own, whole).Wait(); };
    case CollectiveKind::kAllToAll:
      return [=, &group] { group.AllToAll(other, whole).Wait(); };
    case CollectiveKind::kBroadcast:
      // Roots by turns: one root could run ahead of the others.
      return [=, &group, root = 0]() mutable {
        group.Broadcast(whole, root).Wait();
        root = (root + 1) % group.size();
      };
    default:
      return [=, &group] { group.AllReduce(whole).Wait(); };
  }
}

/// There and back again: two messages.
std::function<void()> MakePingPong(Communicator& pair, std::int64_t bytes) {
  const at::Tensor tensor = at::ones({std::max<std::int64_t>(bytes / 4, 1)});
  return [=, &pair] {
    for (const bool sends : {pair.index() == 0, pair.index() == 1}) {
      pair.Exchange({{.tensor = tensor, .peer = 1 - pair.index(), .sends = sends}}).front().Wait();
    }
  };
}

/// Ranks a core when `num_ranks` compute at once.
double SharingOf(int num_ranks) {
  const double cores = std::max(1U, std::thread::hardware_concurrency());
  return std::max(1.0, num_ranks / cores);
}

std::vector<CommCase> CasesOf(Communicator& group, bool quick) {
  constexpr std::int64_t kKiB = 1024;
  std::vector<std::int64_t> sizes = {64, 16 * kKiB, 128 * kKiB, 1'024 * kKiB, 8'192 * kKiB};
  if (quick) sizes = {64, 16 * kKiB, 1'024 * kKiB, 8'192 * kKiB};
  const std::size_t num_fitted = sizes.size();
  sizes.insert(sizes.end(), {32 * kKiB, 512 * kKiB});
  std::vector<CommCase> cases;
  for (std::size_t at = 0; at < sizes.size(); ++at) {
    const bool held_out = at >= num_fitted;
    for (const CollectiveKind kind :
         {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
          CollectiveKind::kAllToAll, CollectiveKind::kBroadcast}) {
      cases.push_back({.table = fmt::format("gloo.{}.ranks_{}", plan::ToText(kind), group.size()),
                       .bytes = sizes[at],
                       .held_out = held_out,
                       .run = MakeRun(group, kind, sizes[at])});
    }
    if (group.size() != 2) continue;
    cases.push_back({.table = "gloo.p2p",
                     .bytes = sizes[at],
                     .held_out = held_out,
                     .times = 2,
                     .run = MakePingPong(group, sizes[at])});
  }
  return cases;
}

int CallsOf(std::int64_t bytes) { return bytes <= 64 << 10 ? 10 : bytes <= 1 << 20 ? 3 : 1; }

/// Some tenths of a millisecond of products: what ranks do between their messages. A message then
/// meets threads that sleep and cores that others hold, as in a step.
class Between {
 public:
  /// Returns its processor time.
  double Run() const {
    const double begin = ThreadTime();
    x_.mm(w_);
    return ThreadTime() - begin;
  }

 private:
  at::Tensor x_ = at::ones({96, 512});
  at::Tensor w_ = at::ones({512, 512});
};

/// Wall time and processor time a call, by sample, without the computation between; all members
/// call it. Computation takes as long as cores are shared: of `sharing` ranks a core for
/// collectives, one after the other for messages there and back.
struct CommSamples {
  Samples wall;
  Samples core;
};
CommSamples Sample(Communicator& group, const CommCase& one, double sharing, bool quick) {
  const at::Tensor token = at::zeros({1});
  const Between between;
  const int calls = CallsOf(one.bytes);
  const int num_samples = quick ? 9 : 15;
  const double messages = calls * one.times;
  CommSamples samples;
  one.run();
  for (int sample = 0; sample < num_samples; ++sample) {
    group.AllReduce(token).Wait();
    const double wall = WallTime();
    const double core = ProcessTime();
    double computed = 0;
    for (int call = 0; call < calls; ++call) {
      computed += between.Run();
      one.run();
    }
    const double time = std::max(WallTime() - wall - computed * sharing, 1e-6);
    samples.wall.values.push_back(time / messages);
    samples.core.values.push_back((ProcessTime() - core - computed) / messages);
  }
  return samples;
}

}  // namespace

void MeasuringRanks::Meet() const { all->AllReduce(at::zeros({1})).Wait(); }

double MeasuringRanks::Mean(double value) const {
  const at::Tensor sum = at::full({1}, value, at::kDouble);
  all->AllReduce(sum).Wait();
  return sum.item<double>() / num_ranks;
}

namespace {

constexpr std::int64_t kBusyBytes = 16 << 10;
constexpr double kBusyTime = 1.5;  // s

/// Messages between two ranks while all others compute without a pause, in one direction and back.
/// The row comes on rank 0.
std::vector<MeasuredRow> MeasureBusyMessages(const MeasuringRanks& ranks) {
  const Between between;
  ranks.Meet();
  const double begin = WallTime();
  if (ranks.rank >= 2) {
    while (WallTime() - begin < kBusyTime) between.Run();
    return {};
  }
  Communicator& pair = *ranks.parts.front();
  const std::function<void()> run = MakePingPong(pair, kBusyBytes);
  Samples samples;
  for (int call = 0; call < 60; ++call) {
    const double start = WallTime();
    const double computed = between.Run();
    run();
    // The pair's kernels come one after the other, each beside those of all others.
    const double alone = 2 * computed * SharingOf(ranks.num_ranks - 1);
    samples.values.push_back(std::max(WallTime() - start - alone, 1e-6) / 2);
  }
  return {samples.ToMedianRow("gloo.p2p.busy", fmt::format("b{}", kBusyBytes))};
}

}  // namespace

std::vector<MeasuredRow> MeasureCommunication(const MeasuringRanks& ranks, bool quick) {
  std::vector<MeasuredRow> rows = MeasureBusyMessages(ranks);
  for (int size = 2; size <= ranks.num_ranks; size *= 2) {
    const auto part = std::ranges::find_if(
        ranks.parts, [size](const auto& candidate) { return candidate->size() == size; });
    if (part != ranks.parts.end()) {
      Communicator& group = **part;
      for (const CommCase& one : CasesOf(group, quick)) {
        const CommSamples samples = Sample(group, one, SharingOf(size), quick);
        MeasuredRow row =
            samples.wall.ToMedianRow(one.table, fmt::format("b{}", one.bytes), one.held_out);
        const at::Tensor core = at::full({1}, base::Median(samples.core.values), at::kDouble);
        group.AllReduce(core).Wait();
        row.core_s = core.item<double>() / size;
        rows.push_back(std::move(row));
      }
    }
    ranks.Meet();
  }
  return rows;
}

std::vector<MeasuredRow> MeasureStaged(const MeasuringRanks& ranks,
                                       const std::vector<std::unique_ptr<Communicator>>& parts,
                                       Device& device) {
  constexpr int kSamples = 9;
  std::vector<MeasuredRow> rows;
  for (const std::unique_ptr<Communicator>& group : parts) {
    for (const CollectiveKind kind :
         {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
      for (const std::int64_t bytes : {std::int64_t{64} << 10, std::int64_t{4} << 20}) {
        const std::function<void()> run = MakeRun(*group, kind, bytes, device.torch_device());
        run();
        Samples samples;
        for (int sample = 0; sample < kSamples; ++sample) {
          device.Synchronize();
          const double begin = WallTime();
          run();
          device.Synchronize();
          samples.values.push_back(WallTime() - begin);
        }
        rows.push_back(samples.ToMedianRow(
            fmt::format("staged.{}.ranks_{}", plan::ToText(kind), group->size()),
            fmt::format("b{}", bytes), /*held_out=*/true));
      }
    }
  }
  ranks.Meet();
  return rows;
}

}  // namespace isthmus::backend
