#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "reports/figures.h"
#include "reports/internal/run_record.h"
#include "traces/trace.h"

namespace isthmus::reports {

/// The part of a run that figures are about, in picoseconds.
struct Window {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t num_steps = 1;

  std::int64_t length() const { return end - begin; }
};

/// Takes the window from the step ends (see Figures). Its end is never before an event's or wait's.
Window WindowOf(const traces::Header& header, const traces::Trailer& trailer,
                const RunRecord& record);

inline TimeUse UseOf(traces::Category category) {
  switch (category) {
    case traces::Category::kCompute:
    case traces::Category::kOptimizer:
      return TimeUse::kCompute;
    case traces::Category::kCopy:
      return TimeUse::kCopy;
    case traces::Category::kHost:
      return TimeUse::kHost;
    default:
      return TimeUse::kExposedComm;
  }
}

/// Cuts [begin, end) of a fused op into its inner shares in proportion; `take(category, begin,
/// end)` gets pieces that follow each other without a gap. An op without shares is one piece of its
/// own category.
template <typename Take>
void SplitByShares(const OpFacts& op, std::span<const traces::InnerShare> shares,
                   std::int64_t begin, std::int64_t end, Take&& take) {
  std::int64_t total = 0;
  for (const traces::InnerShare& share : shares) total += share.duration_ps;
  if (total <= 0) {
    take(op.category, begin, end);
    return;
  }
  const std::int64_t length = end - begin;
  std::int64_t sum = 0;
  std::int64_t at = begin;
  for (const traces::InnerShare& share : shares) {
    sum += share.duration_ps;
    std::int64_t to = begin + sum;
    if (length != total) {
      const double fraction = static_cast<double>(sum) / static_cast<double>(total);
      to = begin + static_cast<std::int64_t>(static_cast<double>(length) * fraction);
    }
    to = sum == total ? end : std::clamp(to, at, end);
    take(share.category, at, to);
    at = to;
  }
  if (at < end) take(op.category, at, end);
}

/// Cuts [begin, end), up to the end of an op's run, into its inner shares and, behind them, what it
/// took longer for synchronisations beside it: `take(category, begin, end, is_slowdown)`.
template <typename Take>
void SplitRun(const RunRecord& record, const SpanRef& ref, std::int64_t begin, std::int64_t end,
              Take&& take) {
  const OpFacts& op = record.op(ref);
  const std::int64_t slowed = std::clamp(end - record.slowdown(ref), begin, end);
  SplitByShares(op, record.role_of(ref.rank_class).shares_of(op), begin, slowed,
                [&](traces::Category category, std::int64_t from, std::int64_t to) {
                  take(category, from, to, false);
                });
  if (slowed < end) take(op.category, slowed, end, true);
}

/// Cuts [begin, end) by the waits imposed on a class: `wait(wait, begin, end)` for what lies in
/// one, `rest(begin, end)` for what lies in none.
template <typename Wait, typename Rest>
void SplitByWaits(std::span<const traces::ImposedWait> waits, std::int64_t begin, std::int64_t end,
                  Wait&& wait, Rest&& rest) {
  for (const traces::ImposedWait& imposed : waits) {
    if (begin >= end || imposed.start_ps >= end) break;
    if (imposed.end_ps <= begin) continue;
    const std::int64_t from = std::max(begin, imposed.start_ps);
    const std::int64_t to = std::min(end, imposed.end_ps);
    if (from > begin) rest(begin, from);
    wait(imposed, from, to);
    begin = to;
  }
  if (begin < end) rest(begin, end);
}

}  // namespace isthmus::reports
