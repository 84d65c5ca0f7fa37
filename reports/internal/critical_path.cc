#include "reports/internal/critical_path.h"

#include <algorithm>

namespace isthmus::reports {
namespace {

class Walker {
 public:
  Walker(const RunRecord& record, const Window& window)
      : record_(record), window_(window), at_(window.end) {}

  CriticalPath Run() {
    Cause cause = WhatEndedLast();
    // Every step moves to an earlier op in a run whose order is consistent; clock skew in a
    // measured one may close a circle.
    for (std::size_t steps = 0; at_ > window_.begin && steps <= record_.num_spans(); ++steps) {
      if (!cause.found) break;
      path_.steps.push_back({cause.ref, waiting_});
      Gap(cause.ref.rank_class, waiting_, cause.ready);
      const SpanRef bound = cause.ref.transfer > 0 ? WalkTransfer(cause.ref) : WalkOp(cause.ref);
      waiting_ = bound;
      cause = record_.BindingCause(bound);
    }
    Gap(waiting_.rank_class, waiting_, window_.begin);
    path_.first = waiting_;
    return std::move(path_);
  }

 private:
  void Add(const SpanRef& ref, int category, std::int64_t begin) {
    begin = std::clamp(begin, window_.begin, at_);
    if (begin == at_) return;
    path_.pieces.push_back({ref, category, begin, at_, false});
    at_ = begin;
  }

  // Books [begin, at_), which no op explains: imposed waits of the class as they say, else host.
  void Gap(std::uint32_t rank_class, const SpanRef& waiting, std::int64_t begin) {
    begin = std::clamp(begin, window_.begin, at_);
    if (begin == at_) return;
    const auto first = static_cast<std::ptrdiff_t>(path_.pieces.size());
    const auto piece = [&](int category, std::int64_t from, std::int64_t to) {
      path_.pieces.push_back({waiting, category, from, to, true});
    };
    SplitByWaits(
        record_.waits(rank_class), begin, at_,
        [&](const traces::ImposedWait& wait, std::int64_t from, std::int64_t to) {
          piece(wait.straggler ? kPathStraggler : static_cast<int>(traces::Category::kHost), from,
                to);
        },
        [&](std::int64_t from, std::int64_t to) {
          piece(static_cast<int>(traces::Category::kHost), from, to);
        });
    std::reverse(path_.pieces.begin() + first, path_.pieces.end());
    at_ = begin;
  }

  // The class on which anything, an imposed wait included, ended last; its last op.
  Cause WhatEndedLast() {
    Cause last;
    std::int64_t last_end = 0;
    for (std::uint32_t index = 0; index < record_.num_classes(); ++index) {
      const Cause candidate = record_.LastEnd(index);
      if (!candidate.found) continue;
      std::int64_t end = candidate.ready;
      for (const traces::ImposedWait& wait : record_.waits(index)) end = std::max(end, wait.end_ps);
      if (!last.found || end > last_end) {
        last = candidate;
        last_end = end;
      }
    }
    waiting_ = last.ref;
    return last;
  }

  // Books an op back to when the last of its members was ready, and returns that member.
  SpanRef WalkOp(const SpanRef& ref) {
    const OpFacts& op = record_.op(ref);
    if (op.kind == OpClass::kP2P) return ref;  // its posting takes no time
    const Span& span = record_.span(ref);
    Run(ref, span.start);
    const Cause last = record_.LastArrival(ref);
    Gap(last.ref.rank_class, last.ref, std::min(last.ready, span.start));
    return last.ref;
  }

  void Run(const SpanRef& ref, std::int64_t begin) {
    begin = std::clamp(begin, window_.begin, at_);
    if (begin == at_) return;
    const auto first = static_cast<std::ptrdiff_t>(path_.pieces.size());
    SplitRun(
        record_, ref, begin, at_,
        [&](traces::Category category, std::int64_t from, std::int64_t to, bool is_slowdown) {
          if (from == to) return;
          path_.pieces.push_back({ref, static_cast<int>(category), from, to, false, is_slowdown});
        });
    std::reverse(path_.pieces.begin() + first, path_.pieces.end());
    at_ = begin;
  }

  // Books a transfer back to when both sides were there, and returns the later side.
  SpanRef WalkTransfer(const SpanRef& ref) {
    const Span& span = record_.span(ref);
    const int category = static_cast<int>(record_.op(ref).category);
    SpanRef later = ref;
    std::int64_t posted = span.issue;
    const Cause other = record_.OtherSide(ref);
    if (other.found && other.ready > posted) {
      later = other.ref;
      posted = other.ready;
    }
    Add(ref, category, std::min(posted, span.start));
    later.transfer = 0;
    return later;
  }

  const RunRecord& record_;
  const Window& window_;
  std::int64_t at_;  // the path is known from here to the window's end
  SpanRef waiting_;  // what waited for the cause at hand
  CriticalPath path_;
};

}  // namespace

CriticalPath FindCriticalPath(const RunRecord& record, const Window& window) {
  if (record.num_classes() == 0) return {};
  return Walker(record, window).Run();
}

}  // namespace isthmus::reports
