#include "reports/internal/time_split.h"

#include <algorithm>

namespace isthmus::reports {
namespace {

// Books the time of one class. `low` and `high` are the ends of the gap being walked.
class Splitter {
 public:
  Splitter(const RunRecord& record, std::uint32_t rank_class, const Window& window,
           std::size_t num_edges)
      : record_(record), rank_class_(rank_class), window_(window) {
    split_.exposed_by_edge_ps.resize(num_edges);
    const traces::RankClass& ranks = record.rank_class(rank_class);
    split_.time.role = ranks.role;
    split_.time.representative = ranks.representative;
    split_.time.count = ranks.count;
  }

  ClassSplit Run() {
    std::int64_t now = window_.begin;
    for (const std::uint32_t op_index : record_.role_of(rank_class_).compute_ops) {
      const SpanRef ref{rank_class_, op_index, 0};
      const Span& span = record_.span(ref);
      if (!span.recorded() || span.end <= now) continue;
      const std::int64_t start = std::max(span.start, now);
      if (start > now) GapBefore(ref, now, start);
      Busy(ref, start, span.end);
      now = span.end;
    }
    const Cause last = record_.LastEnd(rank_class_);
    if (last.found && last.ready > now) {
      WalkBack(last, now, last.ready);
      now = last.ready;
    }
    if (now < window_.end) Idle(TimeUse::kBubble, now, window_.end);
    return std::move(split_);
  }

 private:
  void Book(TimeUse use, std::int64_t duration) {
    split_.time.use_ps[static_cast<std::size_t>(use)] += duration;
  }

  void BookCategory(traces::Category category, std::uint16_t edge, std::int64_t duration) {
    const TimeUse use = UseOf(category);
    Book(use, duration);
    if (use != TimeUse::kExposedComm) return;
    split_.time.exposed_ps[static_cast<std::size_t>(category)] += duration;
    if (category == traces::Category::kBoundaryComm && edge > 0) {
      split_.exposed_by_edge_ps[edge - 1U] += duration;
    }
  }

  void Busy(const SpanRef& ref, std::int64_t begin, std::int64_t end) {
    const OpFacts& op = record_.op(ref);
    SplitRun(record_, ref, begin, end,
             [&](traces::Category category, std::int64_t from, std::int64_t to, bool) {
               BookCategory(category, op.edge, to - from);
             });
  }

  // Time with the compute lane idle; imposed waits take precedence over `rest`.
  template <typename Rest>
  void IdleBut(std::int64_t begin, std::int64_t end, Rest&& rest) {
    SplitByWaits(
        record_.waits(rank_class_), begin, end,
        [&](const traces::ImposedWait& wait, std::int64_t from, std::int64_t to) {
          Book(wait.straggler ? TimeUse::kStraggler : TimeUse::kHost, to - from);
        },
        [&](std::int64_t from, std::int64_t to) { rest(to - from); });
  }

  void Idle(TimeUse use, std::int64_t begin, std::int64_t end) {
    IdleBut(begin, end, [&](std::int64_t duration) { Book(use, duration); });
  }

  void IdleIn(const OpFacts& op, std::uint16_t edge, std::int64_t begin, std::int64_t end) {
    IdleBut(begin, end, [&](std::int64_t duration) { BookCategory(op.category, edge, duration); });
  }

  void GapBefore(const SpanRef& ref, std::int64_t low, std::int64_t high) {
    const std::int64_t issue = std::clamp(record_.span(ref).issue, low, high);
    Idle(record_.op(ref).group > 0 ? TimeUse::kStraggler : TimeUse::kHost, issue, high);
    if (issue > low) WalkBack(record_.BindingCause(ref), low, issue);
  }

  // Explains [low, high), at whose end something waited for `cause`.
  void WalkBack(Cause cause, std::int64_t low, std::int64_t high) {
    while (high > low) {
      const std::int64_t ready = cause.found ? std::clamp(cause.ready, low, high) : low;
      if (ready < high) Idle(TimeUse::kHost, ready, high);
      high = ready;
      if (high <= low) return;
      high = cause.ref.transfer > 0 ? WalkTransfer(cause.ref, low, high)
                                    : WalkOp(cause.ref, low, high);
      if (high > low) cause = record_.BindingCause(cause.ref);
    }
  }

  // Returns the time up to which the gap is explained: the op's issue, or `low`.
  std::int64_t WalkOp(const SpanRef& ref, std::int64_t low, std::int64_t high) {
    const OpFacts& op = record_.op(ref);
    if (op.kind == OpClass::kP2P) return high;  // its posting takes no time
    const Span& span = record_.span(ref);
    const std::int64_t start = std::clamp(span.start, low, high);
    const std::int64_t issue = std::clamp(span.issue, low, start);
    IdleIn(op, op.edge, start, high);
    const bool matched = op.kind == OpClass::kCollective || op.group > 0;
    Idle(matched ? UseOfWait(op) : TimeUse::kHost, issue, start);
    return issue;
  }

  // Members of boundary groups and of the groups that agree on scalars are at different stages: who
  // comes early waits for work of another stage. Elsewhere members do the same, and the last is
  // late.
  static TimeUse UseOfWait(const OpFacts& op) {
    const bool across_stages =
        op.kind == OpClass::kCollective && (op.category == traces::Category::kBoundaryComm ||
                                            op.category == traces::Category::kScalarComm);
    return across_stages ? TimeUse::kBubble : TimeUse::kStraggler;
  }

  std::int64_t WalkTransfer(const SpanRef& ref, std::int64_t low, std::int64_t high) {
    const Span& span = record_.span(ref);
    const std::int64_t issue = std::clamp(span.issue, low, high);
    std::int64_t posted = span.start;
    const OpFacts& op = record_.op(ref);
    std::uint16_t edge = op.edge;
    const Cause other = record_.OtherSide(ref);
    if (other.found) {
      posted = std::min(posted, std::max(other.ready, span.issue));
      const std::uint16_t crossed = record_.EdgeBetween(op.module, record_.op(other.ref).module);
      if (crossed > 0) edge = crossed;
    }
    posted = std::clamp(posted, issue, high);
    IdleIn(op, edge, posted, high);
    Idle(TimeUse::kBubble, issue, posted);
    return issue;
  }

  const RunRecord& record_;
  std::uint32_t rank_class_;
  const Window& window_;
  ClassSplit split_;
};

}  // namespace

ClassSplit SplitTime(const RunRecord& record, std::uint32_t rank_class, const Window& window,
                     std::size_t num_edges) {
  return Splitter(record, rank_class, window, num_edges).Run();
}

}  // namespace isthmus::reports
