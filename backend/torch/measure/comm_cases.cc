#include "backend/torch/measure/comm_cases.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "backend/torch/measure/stopwatch.h"
#include "base/statistics.h"

namespace isthmus::backend {
namespace {

using plan::CollectiveKind;
using traces::MeasuredRow;

/// One call of a collective, or a message between two, by all members.
struct CommCase {
  std::string table;
  std::optional<CollectiveKind> kind;  // none: messages
  std::int64_t bytes = 0;
  bool held_out = false;
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

/// A message there, then one back.
std::function<void()> MakeMessage(Communicator& pair, std::int64_t bytes) {
  const at::Tensor tensor = at::ones({std::max<std::int64_t>(bytes / 4, 1)});
  return [=, &pair, sends = pair.index() == 0]() mutable {
    pair.Exchange({{.tensor = tensor, .peer = 1 - pair.index(), .sends = sends}}).front().Wait();
    sends = !sends;
  };
}

std::vector<CommCase> CasesOf(int num_ranks, bool quick) {
  constexpr std::int64_t kKiB = 1024;
  std::vector<std::int64_t> sizes = {64, 16 * kKiB, 128 * kKiB, 1'024 * kKiB, 8'192 * kKiB};
  if (quick) sizes = {64, 16 * kKiB, 1'024 * kKiB, 8'192 * kKiB};
  const std::size_t num_fitted = sizes.size();
  sizes.insert(sizes.end(), {32 * kKiB, 512 * kKiB});
  std::vector<CommCase> cases;
  for (std::size_t at = 0; at < sizes.size(); ++at) {
    CommCase one{.bytes = sizes[at], .held_out = at >= num_fitted};
    for (const CollectiveKind kind :
         {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
          CollectiveKind::kAllToAll, CollectiveKind::kBroadcast}) {
      one.kind = kind;
      one.table = fmt::format("gloo.{}.ranks_{}", plan::ToText(kind), num_ranks);
      cases.push_back(one);
    }
    if (num_ranks != 2) continue;
    one.kind.reset();
    one.table = "gloo.p2p";
    cases.push_back(one);
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

/// Wall time and processor time a call, by sample.
struct CommSamples {
  Samples wall;
  Samples core;
};

/// From the begins and ends of this member's calls, in turn: the mean time from the last member's
/// begin to the last one's end. Processes of one machine share the clock.
double MeanTime(Communicator& group, const std::vector<double>& stamps) {
  const at::Tensor last = at::tensor(stamps, at::kDouble);
  group.AllReduce(last, Communicator::Reduction::kMax).Wait();
  const auto* times = last.data_ptr<double>();
  double sum = 0;
  for (std::size_t at = 0; at < stamps.size(); at += 2) sum += times[at + 1] - times[at];
  return sum / (static_cast<double>(stamps.size()) / 2);
}

/// Calls with computation in front of each; all members call it.
void AddSample(Communicator& group, const std::function<void()>& run, int calls,
               CommSamples& samples) {
  const Between between;
  std::vector<double> stamps;
  group.AllReduce(at::zeros({1})).Wait();
  const double core = ProcessTime();
  double computed = 0;
  for (int call = 0; call < calls; ++call) {
    computed += between.Run();
    stamps.push_back(WallTime());
    run();
    stamps.push_back(WallTime());
  }
  samples.core.values.push_back((ProcessTime() - core - computed) / calls);
  samples.wall.values.push_back(std::max(MeanTime(group, stamps), 1e-6));
}

/// All members call it.
MeasuredRow RowOf(Communicator& group, const CommCase& one, const CommSamples& samples) {
  MeasuredRow row =
      samples.wall.ToMedianRow(one.table, fmt::format("b{}", one.bytes), one.held_out);
  const at::Tensor core = at::full({1}, base::Median(samples.core.values), at::kDouble);
  group.AllReduce(core).Wait();
  row.core_s = core.item<double>() / group.size();
  return row;
}

}  // namespace

void MeasuringRanks::Meet() const { all->AllReduce(at::zeros({1})).Wait(); }

double MeasuringRanks::Mean(double value) const {
  const at::Tensor sum = at::full({1}, value, at::kDouble);
  all->AllReduce(sum).Wait();
  return sum.item<double>() / num_ranks;
}

namespace {

/// All cases by turns, so that what disturbs the machine for a while is in a sample of each. The
/// rows come on the ranks that are in a part.
std::vector<MeasuredRow> MeasureParts(const MeasuringRanks& ranks, int size, bool quick) {
  const auto part = std::ranges::find_if(
      ranks.parts, [size](const auto& candidate) { return candidate->size() == size; });
  Communicator* const group = part == ranks.parts.end() ? nullptr : part->get();
  const std::vector<CommCase> cases = CasesOf(size, quick);
  std::vector<std::function<void()>> runs;
  for (const CommCase& one : cases) {
    if (group == nullptr) break;
    runs.push_back(one.kind ? MakeRun(*group, *one.kind, one.bytes)
                            : MakeMessage(*group, one.bytes));
    runs.back()();
  }
  std::vector<CommSamples> samples(cases.size());
  const int num_samples = quick ? 9 : 15;
  for (int sample = 0; sample < num_samples; ++sample) {
    for (std::size_t at = 0; at < cases.size(); ++at) {
      ranks.Meet();
      if (group != nullptr) AddSample(*group, runs[at], CallsOf(cases[at].bytes), samples[at]);
    }
  }
  std::vector<MeasuredRow> rows;
  for (std::size_t at = 0; at < cases.size() && group != nullptr; ++at) {
    rows.push_back(RowOf(*group, cases[at], samples[at]));
    rows.back().busy_ranks = ranks.num_ranks / size * size;
  }
  return rows;
}

}  // namespace

std::vector<MeasuredRow> MeasureCommunication(const MeasuringRanks& ranks, bool quick) {
  std::vector<MeasuredRow> rows;
  for (int size = 2; size <= ranks.num_ranks; size *= 2) {
    std::vector<MeasuredRow> more = MeasureParts(ranks, size, quick);
    rows.insert(rows.end(), std::make_move_iterator(more.begin()),
                std::make_move_iterator(more.end()));
  }
  return rows;
}

std::vector<MeasuredRow> MeasureStaged(const MeasuringRanks& ranks,
                                       const std::vector<std::unique_ptr<Communicator>>& parts,
                                       Device& device) {
  constexpr int kSamples = 9;
  std::vector<MeasuredRow> rows;
  for (const std::unique_ptr<Communicator>& group : parts) {
    // The first of a size alone: the model has no ranks that share the way to the GPU.
    if (group->members().front() != base::Rank(0)) continue;
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
        rows.back().busy_ranks = group->size();
      }
    }
  }
  ranks.Meet();
  return rows;
}

}  // namespace isthmus::backend
