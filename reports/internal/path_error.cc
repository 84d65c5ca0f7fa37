#include "reports/internal/path_error.h"

#include <algorithm>

namespace isthmus::reports {
namespace {

// Books the window from its end backwards.
class Pricer {
 public:
  Pricer(const RunRecord& record, const Window& window)
      : record_(record), window_(window), at_(window.end) {}

  PathCost Run(const CriticalPath& path) {
    bool is_tail = true;
    for (const PathStep& step : path.steps) {
      if (!record_.span(step.cause).recorded()) continue;
      const std::int64_t end = record_.span(step.cause).end;
      if (is_tail) {
        Tail(step.cause.rank_class, end);
      } else {
        Gap(step.waiter, end);
      }
      Op(step.cause);
      is_tail = false;
    }
    Gap(path.first, window_.begin);
    return cost_;
  }

 private:
  // Books [begin, at_) as `term`, but for waits imposed on the rank.
  void Book(std::uint32_t rank_class, std::int64_t begin, std::int64_t PathCost::*term) {
    begin = std::clamp(begin, window_.begin, at_);
    SplitByWaits(
        record_.waits(rank_class), begin, at_,
        [&](const traces::ImposedWait& wait, std::int64_t from, std::int64_t to) {
          (wait.straggler ? cost_.wait : cost_.host) += to - from;
        },
        [&](std::int64_t from, std::int64_t to) { cost_.*term += to - from; });
    at_ = begin;
  }

  // After the path's last op: others may have been over later, and then the step's end.
  void Tail(std::uint32_t rank_class, std::int64_t begin) {
    std::int64_t latest = begin;
    for (std::uint32_t index = 0; index < record_.num_classes(); ++index) {
      const Cause last = record_.LastEnd(index);
      if (last.found) latest = std::max(latest, last.ready);
    }
    Book(rank_class, latest, &PathCost::host);
    Book(rank_class, begin, &PathCost::wait);
  }

  void Gap(const SpanRef& waiter, std::int64_t begin) {
    begin = std::clamp(begin, window_.begin, at_);
    if (record_.span(waiter).recorded()) {
      const std::int64_t issue = std::max(begin, record_.span(waiter).issue);
      if (record_.op(waiter).kind != OpClass::kP2P) {
        Book(waiter.rank_class, record_.LastArrival(waiter).ready, &PathCost::host);
      }
      Book(waiter.rank_class, issue, &PathCost::wait);
      const Cause cause = record_.BindingCause(waiter);
      Book(waiter.rank_class, cause.found ? std::max(begin, cause.ready) : begin, &PathCost::host);
    }
    Book(waiter.rank_class, begin, &PathCost::wait);
  }

  void Op(const SpanRef& ref) {
    std::int64_t begin = record_.span(ref).start;
    if (ref.transfer > 0) {
      // Queueing after both sides were there is the network's, as in Analysis.
      const Cause other = record_.OtherSide(ref);
      const std::int64_t posted = record_.span(ref).issue;
      begin = std::min(begin, other.found ? std::max(posted, other.ready) : posted);
    }
    begin = std::clamp(begin, window_.begin, at_);
    SplitRun(record_, ref, begin, at_,
             [&](traces::Category category, std::int64_t from, std::int64_t to, bool) {
               TermOf(category) += to - from;
             });
    at_ = begin;
  }

  std::int64_t& TermOf(traces::Category category) {
    switch (UseOf(category)) {
      case TimeUse::kCompute:
        return cost_.compute;
      case TimeUse::kHost:
        return cost_.host;
      default:
        return cost_.collective;
    }
  }

  const RunRecord& record_;
  const Window& window_;
  std::int64_t at_;  // the window is booked from here on
  PathCost cost_;
};

}  // namespace

PathCost PriceAlong(const CriticalPath& path, const RunRecord& record, const Window& window) {
  if (record.num_classes() == 0) return {};
  return Pricer(record, window).Run(path);
}

}  // namespace isthmus::reports
