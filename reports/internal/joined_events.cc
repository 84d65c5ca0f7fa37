#include "reports/internal/joined_events.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/statistics.h"
#include "reports/internal/window.h"

namespace isthmus::reports {
namespace {

constexpr double kPicosecond = 1e-12;

double Seconds(std::int64_t time_ps) { return static_cast<double>(time_ps) * kPicosecond; }

// "forward llm mb3 block 0" and "forward llm mb4 block 0" are one name.
std::string NameOfAllMicrobatches(const traces::OpRecord& op) {
  if (op.microbatch < 0) return op.name;
  const std::string mark = fmt::format(" mb{}", op.microbatch);
  const std::size_t at = op.name.find(mark);
  const std::size_t after = at + mark.size();
  const bool is_whole =
      at != std::string::npos && (after == op.name.size() || op.name[after] == ' ');
  return is_whole ? op.name.substr(0, at) + op.name.substr(after) : op.name;
}

// Durations of joined events by a key.
class Rows {
 public:
  void Add(const std::string& key, std::int64_t predicted, std::int64_t measured) {
    Sum& sum = sums_[key];
    ++sum.num_events;
    sum.predicted += predicted;
    sum.measured += measured;
    if (measured <= 0) return;
    const auto whole = static_cast<double>(measured);
    sum.abs_errors.push_back(std::abs(static_cast<double>(predicted - measured)) / whole);
  }

  /// `share`: what a picosecond of the sums counts for, as seconds of a rank's step.
  std::vector<ComparedRow> Take(double share) {
    std::vector<ComparedRow> rows;
    for (auto& [key, sum] : sums_) {
      ComparedRow& row = rows.emplace_back();
      row.key = key;
      row.num_events = sum.num_events;
      row.time = {static_cast<double>(sum.predicted) * share,
                  static_cast<double>(sum.measured) * share};
      if (sum.abs_errors.empty()) continue;
      row.median_abs_error = base::Median(std::move(sum.abs_errors));
    }
    std::stable_sort(rows.begin(), rows.end(), [](const ComparedRow& a, const ComparedRow& b) {
      return std::abs(a.time.difference_s()) > std::abs(b.time.difference_s());
    });
    return rows;
  }

 private:
  struct Sum {
    std::int64_t num_events = 0;
    std::int64_t predicted = 0;
    std::int64_t measured = 0;
    std::vector<double> abs_errors;
  };
  std::map<std::string, Sum> sums_;
};

// Joins the events of both sides and sums what they took.
class Joiner {
 public:
  explicit Joiner(const BothRecords& records)
      : header_(records.header), predicted_(records.predicted), measured_(records.measured) {}

  void Run(const CriticalPath& critical, int num_worst, Comparison& result) {
    for (const PathStep& step : critical.steps) {
      const SpanRef& ref = step.cause;
      critical_.insert({RoleIndex(ref.rank_class), ref.op, ref.transfer});
    }
    for (std::uint32_t rank = 0; rank < measured_.num_classes(); ++rank) JoinRank(rank, result);
    const double per_step = 1.0 / (static_cast<double>(std::max(header_.num_ranks, 1)) *
                                   static_cast<double>(std::max(header_.num_steps, 1)));
    const double share = kPicosecond * per_step;
    result.categories = categories_.Take(share);
    result.kinds = kinds_.Take(share);
    result.modules = modules_.Take(share);
    result.ops = ops_.Take(share);
    TakeWorst(num_worst, result);
  }

 private:
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // role, op, transfer

  std::uint32_t RoleIndex(std::uint32_t rank) const { return header_.classes[rank].role; }
  const traces::OpRecord& OpOf(const SpanRef& ref) const {
    return header_.roles[RoleIndex(ref.rank_class)].ops[ref.op];
  }

  void JoinRank(std::uint32_t rank, Comparison& result) {
    const std::vector<OpFacts>& ops = measured_.role_of(rank).ops;
    for (std::uint32_t op = 0; op < ops.size(); ++op) {
      const bool has_transfers = ops[op].kind == OpClass::kP2P;
      const std::uint32_t first = has_transfers ? 1 : 0;  // a posting takes no time
      const std::uint32_t last = has_transfers ? ops[op].num_transfers : 0U;
      for (std::uint32_t transfer = first; transfer <= last; ++transfer) {
        Join({rank, op, transfer}, result);
      }
    }
  }

  void Join(const SpanRef& ref, Comparison& result) {
    const Span& predicted = predicted_.span(ref);
    const Span& measured = measured_.span(ref);
    if (!predicted.recorded() && !measured.recorded()) return;
    const traces::OpRecord& op = OpOf(ref);
    if (!predicted.recorded() || !measured.recorded()) {
      result.lone.push_back({static_cast<std::int32_t>(ref.rank_class), ref.op, ref.transfer,
                             op.name, predicted.recorded()});
      return;
    }
    ++result.num_joined;
    const std::int64_t before = predicted.end - predicted.start;
    const std::int64_t after = measured.end - measured.start;
    kinds_.Add(op.kind + " " + op.action, before, after);
    modules_.Add(header_.modules[op.module].name, before, after);
    ops_.Add(NameOfAllMicrobatches(op), before, after);
    AddCategories(ref, before, after);
    KeepIfWorst(ref, before, after);
  }

  using ByCategory = std::array<std::int64_t, traces::kNumCategories>;
  static ByCategory Split(const RunRecord& record, const SpanRef& ref, std::int64_t duration) {
    ByCategory parts{};
    SplitRun(record, ref, 0, duration,
             [&](traces::Category category, std::int64_t from, std::int64_t to, bool) {
               parts[static_cast<std::size_t>(category)] += to - from;
             });
    return parts;
  }

  void AddCategories(const SpanRef& ref, std::int64_t before, std::int64_t after) {
    const ByCategory predicted = Split(predicted_, ref, before);
    const ByCategory measured = Split(measured_, ref, after);
    for (std::size_t index = 0; index < predicted.size(); ++index) {
      if (predicted[index] == 0 && measured[index] == 0) continue;
      categories_.Add(traces::ToText(static_cast<traces::Category>(index)), predicted[index],
                      measured[index]);
    }
  }

  void KeepIfWorst(const SpanRef& ref, std::int64_t before, std::int64_t after) {
    Candidate& worst = worst_[{RoleIndex(ref.rank_class), ref.op, ref.transfer}];
    ++worst.num_ranks;
    if (worst.num_ranks > 1 && std::abs(before - after) <= std::abs(worst.before - worst.after)) {
      return;
    }
    worst.ref = ref;
    worst.before = before;
    worst.after = after;
  }

  void TakeWorst(int count, Comparison& result) const {
    for (const auto& [key, worst] : worst_) {
      const traces::OpRecord& op = OpOf(worst.ref);
      ComparedOp& row = result.worst_ops.emplace_back();
      row.name = op.name;
      row.kind = op.kind + " " + op.action;
      row.role = measured_.role_of(worst.ref.rank_class).name;
      row.rank = static_cast<std::int32_t>(worst.ref.rank_class);
      row.num_ranks = worst.num_ranks;
      row.op = worst.ref.op;
      row.transfer = worst.ref.transfer;
      row.microbatch = op.microbatch;
      row.on_critical_path = critical_.contains(key);
      row.time = {Seconds(worst.before), Seconds(worst.after)};
    }
    std::stable_sort(result.worst_ops.begin(), result.worst_ops.end(),
                     [](const ComparedOp& a, const ComparedOp& b) {
                       return std::abs(a.time.difference_s()) > std::abs(b.time.difference_s());
                     });
    const auto most = static_cast<std::size_t>(std::max(count, 0));
    if (result.worst_ops.size() > most) result.worst_ops.resize(most);
  }

  // The rank of a role's op that differs most.
  struct Candidate {
    SpanRef ref;
    std::int64_t before = 0;
    std::int64_t after = 0;
    std::int32_t num_ranks = 0;
  };

  const traces::Header& header_;
  const RunRecord& predicted_;
  const RunRecord& measured_;
  std::set<Key> critical_;
  Rows categories_;
  Rows kinds_;
  Rows modules_;
  Rows ops_;
  std::map<Key, Candidate> worst_;
};

}  // namespace

void JoinEvents(const BothRecords& records, const CriticalPath& path, int num_worst,
                Comparison& result) {
  Joiner(records).Run(path, num_worst, result);
}

}  // namespace isthmus::reports
