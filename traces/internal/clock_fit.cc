#include "traces/internal/clock_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "base/statistics.h"
#include "traces/internal/offset_graph.h"
#include "traces/meetings.h"

namespace isthmus::traces::internal {
namespace {

constexpr std::size_t kAllPairsUpTo = 32;
constexpr std::size_t kFewestForDrift = 8;
constexpr double kDriftGain = 0.7;
constexpr double kOffsetGain = 0.5;
constexpr double kSlack = 0.5;  // picoseconds: what rounding may leave of a violation
// Against 1 of a collective. A receiver that asks late is over long after the sender.
constexpr double kMessageWeight = 1.0 / 64;
constexpr int kDriftRounds = 3;
constexpr int kMostSweeps = 400;

// 0 of none: ranks that were over with nothing together.
double MedianOf(std::vector<double> values) {
  return values.empty() ? 0 : base::Median(std::move(values));
}

// Two ranks and what they did together: events over together, and order that must hold.
struct Pair {
  std::uint32_t one = 0;
  std::uint32_t other = 0;
  bool by_messages = false;
  std::vector<std::pair<std::size_t, std::size_t>> ends;  // (event of one, event of other)

  double weight() const {
    return static_cast<double>(ends.size()) * (by_messages ? kMessageWeight : 1);
  }
};

struct Order {
  std::size_t came = 0;  // its issue …
  std::size_t over = 0;  // … is not after this event's end
};

// Fits the clocks of one trace.
class Fit {
 public:
  explicit Fit(const Trace& trace) : trace_(trace) {
    for (const Meeting& meeting : FindMeetings(trace)) {
      if (meeting.is_message || meeting.waits_for_all) Add(meeting);
    }
    StartFromOneClock();
  }

  ClockSkew Run() {
    ClockSkew one_clock = Describe();
    const bool violated = IsViolated();
    if (!violated && IsOneHost()) return one_clock;
    TakeOffsets();
    ClockSkew best = Describe();
    for (int round = 0; round < kDriftRounds; ++round) TakeDrift();
    const ClockSkew drifting = Describe();
    if (drifting.residual_ps < kDriftGain * best.residual_ps) {
      best = drifting;
      best.has_drift = true;
    }
    if (!violated && !(best.residual_ps < kOffsetGain * one_clock.residual_ps)) return one_clock;
    skew_.clocks = best.clocks;
    RespectCausality();
    best.clocks = skew_.clocks;
    best.residual_ps = Describe().residual_ps;
    best.has_offsets = true;
    return best;
  }

 private:
  void Add(const Meeting& meeting) {
    const std::size_t count = meeting.events.size();
    for (std::size_t first = 0; first < count; ++first) {
      for (std::size_t second = first + 1; second < count; ++second) {
        const bool near = first == 0 || second == first + 1;
        if (count > kAllPairsUpTo && !near) break;
        AddEnds(meeting.events[first], meeting.events[second], meeting.is_message);
        orders_.push_back({meeting.events[first], meeting.events[second]});
        if (!meeting.is_message) orders_.push_back({meeting.events[second], meeting.events[first]});
      }
    }
  }

  void AddEnds(std::size_t one, std::size_t other, bool is_message) {
    if (ClassOf(one) > ClassOf(other)) std::swap(one, other);
    const std::tuple key{ClassOf(one), ClassOf(other), is_message};
    if (ClassOf(one) == ClassOf(other)) return;
    const auto [at, is_new] = pair_of_.try_emplace(key, pairs_.size());
    if (is_new) pairs_.push_back({ClassOf(one), ClassOf(other), is_message, {}});
    pairs_[at->second].ends.emplace_back(one, other);
  }

  void StartFromOneClock() {
    const std::size_t count = trace_.header.classes.size();
    skew_.clocks.resize(count);
    std::vector<std::pair<std::int64_t, std::int64_t>> spans(
        count, {std::numeric_limits<std::int64_t>::max(), 0});
    for (const Event& event : trace_.events) {
      auto& [first, last] = spans[event.rank_class];
      first = std::min(first, event.issue_ps);
      last = std::max(last, event.end_ps);
    }
    std::vector<Difference> links;
    for (const Pair& pair : pairs_) links.push_back({pair.one, pair.other, 0, 1});
    const std::vector<std::uint32_t> roots = RootsOf(links, count);
    for (std::size_t index = 0; index < count; ++index) {
      const auto [first, last] = spans[index];
      if (first <= last) skew_.clocks[index].middle_ps = first + (last - first) / 2;
      skew_.clocks[index].reference = roots[index];
    }
  }

  std::uint32_t ClassOf(std::size_t event) const { return trace_.events[event].rank_class; }
  double Corrected(std::uint32_t rank_class, std::int64_t time) const {
    const RankClock& clock = skew_.clocks[rank_class];
    const auto since = static_cast<double>(time - clock.middle_ps);
    return static_cast<double>(clock.middle_ps) + since * (1 - clock.drift) - clock.offset_ps;
  }
  double End(std::size_t event) const {
    return Corrected(ClassOf(event), trace_.events[event].end_ps);
  }
  double Issue(std::size_t event) const {
    return Corrected(ClassOf(event), trace_.events[event].issue_ps);
  }

  bool IsOneHost() const {
    const std::vector<RankClass>& classes = trace_.header.classes;
    return std::all_of(classes.begin(), classes.end(), [&](const RankClass& rank_class) {
      return rank_class.node == classes.front().node;
    });
  }

  ClockSkew Describe() const {
    ClockSkew skew = skew_;
    std::vector<double> apart;
    // Messages only where there is nothing better.
    for (const bool by_messages : {false, true}) {
      if (!apart.empty()) break;
      for (const Pair& pair : pairs_) {
        if (pair.by_messages != by_messages) continue;
        for (const auto& [one, other] : pair.ends) apart.push_back(std::abs(End(one) - End(other)));
      }
    }
    skew.num_samples = static_cast<std::int64_t>(apart.size());
    skew.residual_ps = MedianOf(apart);
    return skew;
  }

  void TakeOffsets() {
    std::vector<Difference> differences;
    for (const Pair& pair : pairs_) {
      std::vector<double> apart;
      for (const auto& [one, other] : pair.ends) apart.push_back(End(one) - End(other));
      differences.push_back({pair.one, pair.other, MedianOf(apart), pair.weight()});
    }
    const std::vector<double> offsets = SolveOffsets(differences, skew_.clocks.size());
    for (std::size_t index = 0; index < offsets.size(); ++index) {
      skew_.clocks[index].offset_ps += offsets[index];
    }
  }

  // One round: what is left of constant offset and drift, at the corrected times so far.
  void TakeDrift() {
    const double middle = Corrected(0, skew_.clocks.front().middle_ps);
    std::vector<Difference> slopes;
    for (const Pair& pair : pairs_) {
      if (pair.ends.size() < kFewestForDrift) continue;
      slopes.push_back({pair.one, pair.other, SlopeOf(pair), pair.weight()});
    }
    const std::vector<double> drifts = SolveOffsets(slopes, skew_.clocks.size());
    std::vector<Difference> differences;
    for (const Pair& pair : pairs_) {
      std::vector<double> apart;
      const double slope = drifts[pair.one] - drifts[pair.other];
      for (const auto& [one, other] : pair.ends) {
        apart.push_back(End(one) - End(other) - slope * (End(one) - middle));
      }
      differences.push_back({pair.one, pair.other, MedianOf(apart), pair.weight()});
    }
    const std::vector<double> offsets = SolveOffsets(differences, skew_.clocks.size());
    for (std::size_t index = 0; index < offsets.size(); ++index) {
      // T' = T - offset - drift · (T - middle), as one map from the rank's own times.
      RankClock& clock = skew_.clocks[index];
      const double at_middle = static_cast<double>(clock.middle_ps) - clock.offset_ps - middle;
      clock.offset_ps += offsets[index] + drifts[index] * at_middle;
      clock.drift = 1 - (1 - clock.drift) * (1 - drifts[index]);
    }
  }

  // Through the medians of the earlier and the later half of what both were over with.
  double SlopeOf(const Pair& pair) const {
    std::vector<std::pair<double, double>> samples;  // (when, how far apart)
    for (const auto& [one, other] : pair.ends) {
      samples.emplace_back(End(one), End(one) - End(other));
    }
    std::sort(samples.begin(), samples.end());
    const std::size_t half = samples.size() / 2;
    const auto median_of = [&](std::size_t first, std::size_t last) {
      std::vector<double> when;
      std::vector<double> apart;
      for (std::size_t index = first; index < last; ++index) {
        when.push_back(samples[index].first);
        apart.push_back(samples[index].second);
      }
      return std::pair{MedianOf(when), MedianOf(apart)};
    };
    const auto [early, apart_early] = median_of(0, half);
    const auto [late, apart_late] = median_of(samples.size() - half, samples.size());
    return late > early ? (apart_late - apart_early) / (late - early) : 0;
  }

  // The tightest order between two ranks at the clocks as they are.
  struct Bound {
    std::uint32_t came = 0;
    std::uint32_t over = 0;
    double slack = 0;
  };
  std::vector<Bound> Bounds() const {
    std::map<std::pair<std::uint32_t, std::uint32_t>, double> tightest;
    for (const Order& order : orders_) {
      const double slack = End(order.over) - Issue(order.came);
      const auto [at, is_new] =
          tightest.try_emplace({ClassOf(order.came), ClassOf(order.over)}, slack);
      if (!is_new) at->second = std::min(at->second, slack);
    }
    std::vector<Bound> bounds;
    for (const auto& [ranks, slack] : tightest) {
      bounds.push_back({ranks.first, ranks.second, slack});
    }
    return bounds;
  }

  bool IsViolated() const {
    const std::vector<Bound> bounds = Bounds();
    return std::any_of(bounds.begin(), bounds.end(),
                       [](const Bound& bound) { return bound.slack < -kSlack; });
  }

  // Moves both ranks of what is violated by half, until nothing is; then the references back to 0.
  void RespectCausality() {
    const std::vector<Bound> bounds = Bounds();
    std::vector<double> moved(skew_.clocks.size(), 0);
    for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
      bool is_violated = false;
      for (const Bound& bound : bounds) {
        const double slack = bound.slack + moved[bound.came] - moved[bound.over];
        if (slack >= -kSlack) continue;
        is_violated = true;
        moved[bound.came] -= slack / 2;
        moved[bound.over] += slack / 2;
      }
      if (!is_violated) break;
    }
    for (std::size_t index = 0; index < moved.size(); ++index) {
      skew_.clocks[index].offset_ps += moved[index] - moved[skew_.clocks[index].reference];
    }
  }

  const Trace& trace_;
  std::vector<Pair> pairs_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, bool>, std::size_t> pair_of_;
  std::vector<Order> orders_;
  ClockSkew skew_;
};

}  // namespace

ClockSkew FitClocks(const Trace& trace) { return Fit(trace).Run(); }

}  // namespace isthmus::traces::internal
