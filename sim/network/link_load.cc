#include "sim/network/link_load.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace isthmus::sim {
namespace {

// The solver's ends are rounded: flows that lost no more than this lost nothing.
constexpr std::int64_t kRoundingPs = 3;

/// Moves what bins have above `room` to the nearest that have less.
void Level(std::span<std::int64_t> bins, std::span<const std::int64_t> room) {
  for (std::size_t from = 0; from < bins.size(); ++from) {
    for (std::size_t away = 1; away < bins.size() && bins[from] > room[from]; ++away) {
      const auto give = [&](std::size_t to) {
        const std::int64_t moved = std::clamp<std::int64_t>(
            room[to] - bins[to], 0, std::max<std::int64_t>(0, bins[from] - room[from]));
        bins[to] += moved;
        bins[from] -= moved;
      };
      if (away <= from) give(from - away);
      if (from + away < bins.size()) give(from + away);
    }
  }
}

}  // namespace

LinkLoad::LinkLoad(const Traffic& traffic)
    : traffic_(traffic), bytes_(traffic.links.size() * kMaxBins), demands_(traffic.links.size()) {}

std::uint32_t LinkLoad::NumberOf(const LinkCause& cause) {
  const auto known = std::find(causes_.begin(), causes_.end(), cause);
  const auto number = static_cast<std::uint32_t>(known - causes_.begin());
  if (known == causes_.end()) causes_.push_back(cause);
  return number;
}

LinkLoad::Demand& LinkLoad::DemandOf(std::uint32_t link, std::uint32_t cause) {
  for (Demand& demand : demands_[link])
    if (demand.cause == cause) return demand;
  return demands_[link].emplace_back(Demand{.cause = cause});
}

void LinkLoad::Begin(const FlowRecord& record, const LinkCause& cause) {
  if (flows_.size() <= record.number) flows_.resize(record.number + 1);
  Flow& flow = flows_[record.number];
  flow.cause = NumberOf(cause);
  flow.rate = record.alone_ps == 0
                  ? 0
                  : std::llround(record.bytes * 1e12 / static_cast<double>(record.alone_ps));
  flow.integrals.clear();
  flow.num_demands.clear();
  for (const std::uint32_t link : traffic_.paths[record.path].contended) {
    flow.num_demands.push_back(demands_[link].size());
    for (Demand& demand : demands_[link]) {
      demand.GoTo(record.start_ps);
      flow.integrals.push_back(demand.integral);
    }
    Demand& own = DemandOf(link, flow.cause);
    own.GoTo(record.start_ps);
    own.rate += flow.rate;
  }
}

void LinkLoad::End(const FlowRecord& record) {
  const Flow& flow = flows_[record.number];
  for (const std::uint32_t link : traffic_.paths[record.path].contended) {
    for (Demand& demand : demands_[link]) demand.GoTo(record.end_ps);
    DemandOf(link, flow.cause).rate -= flow.rate;
  }
  Spread(record);
  const std::int64_t lost_ps = record.end_ps - record.start_ps - record.alone_ps;
  if (lost_ps <= kRoundingPs) return;
  Blame(record, lost_ps);
}

void LinkLoad::Spread(const FlowRecord& flow) {
  ReachTo(flow.end_ps);
  const std::int64_t bytes = std::llround(flow.bytes);
  const std::int64_t length = flow.end_ps - flow.start_ps;
  const std::vector<std::uint32_t>& links = traffic_.paths[flow.path].links;
  auto bin = static_cast<std::size_t>(flow.start_ps / bin_ps_);
  std::int64_t before = 0;
  do {
    const std::int64_t edge = std::min(flow.end_ps, EndOf(bin));
    const auto by_edge =
        length == 0 ? bytes
                    : static_cast<std::int64_t>(Wide{bytes} * (edge - flow.start_ps) / length);
    // What has no length may lie on the last edge of all.
    for (const std::uint32_t link : links) Add(link, std::min(bin, kMaxBins - 1), by_edge - before);
    before = by_edge;
    ++bin;
  } while (EndOf(bin - 1) < flow.end_ps);
}

void LinkLoad::ReachTo(std::int64_t end_ps) {
  while (EndOf(kMaxBins - 1) < end_ps) DoubleBins();
}

void LinkLoad::DoubleBins() {
  bin_ps_ *= 2;
  for (std::size_t first = 0; first < bytes_.size(); first += kMaxBins) {
    for (std::size_t bin = 0; bin < kMaxBins; ++bin) {
      const std::size_t fine = 2 * bin;
      bytes_[first + bin] = fine < kMaxBins ? bytes_[first + fine] + bytes_[first + fine + 1] : 0;
    }
  }
}

LinkLoad::Pressure LinkLoad::Bottleneck(const FlowRecord& record) const {
  const Flow& flow = flows_[record.number];
  const std::vector<std::uint32_t>& links = traffic_.paths[record.path].contended;
  Pressure most;
  double highest = -1;
  std::size_t next = 0;  // of flow.integrals
  for (std::size_t at = 0; at < links.size(); ++at) {
    Pressure here{.link = links[at]};
    for (std::size_t index = 0; index < demands_[links[at]].size(); ++index) {
      const Demand& demand = demands_[links[at]][index];
      const bool was_there = index < flow.num_demands[at];
      Wide asked = demand.integral - (was_there ? flow.integrals[next + index] : Wide{0});
      here.of_all += asked;
      if (demand.cause == flow.cause) asked -= Wide{flow.rate} * (record.end_ps - record.start_ps);
      here.of_others.push_back(asked);
    }
    next += flow.num_demands[at];
    const double load =
        static_cast<double>(here.of_all) / traffic_.links[links[at]].link.bandwidth.value();
    if (load <= highest) continue;
    highest = load;
    most = std::move(here);
  }
  return most;
}

void LinkLoad::Blame(const FlowRecord& record, std::int64_t lost_ps) {
  const std::uint32_t victim = flows_[record.number].cause;
  const Pressure pressure = Bottleneck(record);
  Wide of_others = 0;
  for (const Wide asked : pressure.of_others) of_others += asked;
  if (of_others == 0) return;  // rounding: nothing is slower but for others
  ++num_slow_flows_;
  lost_ps_ += lost_ps;
  Wide up_to_here = 0;
  std::int64_t given = 0;
  for (std::size_t index = 0; index < pressure.of_others.size(); ++index) {
    up_to_here += pressure.of_others[index];
    if (pressure.of_others[index] == 0) continue;
    // The last one takes what is left: large times are no whole doubles.
    const std::int64_t so_far =
        up_to_here == of_others
            ? lost_ps
            : std::llround(static_cast<double>(lost_ps) *
                           (static_cast<double>(up_to_here) / static_cast<double>(of_others)));
    const std::uint32_t culprit = demands_[pressure.link][index].cause;
    LinkLoss& loss = losses_[{victim, culprit, pressure.link}];
    ++loss.num_flows;
    loss.lost_ps += so_far - given;
    loss.longest_ps = std::max(loss.longest_ps, so_far - given);
    given = so_far;
  }
}

LinkHistory LinkLoad::History(std::int64_t end_ps) && {
  LinkHistory history{.num_slow_flows = num_slow_flows_, .lost_ps = lost_ps_};
  ReachTo(end_ps);
  history.bin_ps = bin_ps_;
  history.num_bins = static_cast<std::size_t>(end_ps / bin_ps_ + (end_ps % bin_ps_ > 0 ? 1 : 0));
  std::vector<std::int64_t> room(history.num_bins);
  for (std::size_t link = 0; link < traffic_.links.size(); ++link) {
    const double bandwidth = traffic_.links[link].link.bandwidth.value();
    for (std::size_t bin = 0; bin < room.size(); ++bin) {
      const auto begin = static_cast<std::int64_t>(bin) * bin_ps_;
      const auto width = static_cast<double>(std::min(bin_ps_, end_ps - begin));
      room[bin] = static_cast<std::int64_t>(std::ceil(bandwidth * width / 1e12));
    }
    const std::span<std::int64_t> bins(&bytes_[link * kMaxBins], history.num_bins);
    Level(bins, room);
    std::copy(bins.begin(), bins.end(),
              bytes_.begin() + static_cast<std::ptrdiff_t>(link * history.num_bins));
  }
  bytes_.resize(traffic_.links.size() * history.num_bins);
  history.bytes = std::move(bytes_);
  for (auto& [key, loss] : losses_) {
    const auto [victim, culprit, link] = key;
    loss.victim = causes_[victim];
    loss.culprit = causes_[culprit];
    loss.link = link;
    history.losses.push_back(loss);
  }
  return history;
}

}  // namespace isthmus::sim
