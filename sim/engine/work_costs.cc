#include "sim/engine/work_costs.h"

#include <algorithm>

#include "base/sim_time.h"

namespace isthmus::sim {
namespace {

traces::Category CategoryOf(plan::AxisSet axes) {
  if (axes.has(plan::Axis::kEp)) return traces::Category::kEpComm;
  if (axes.has(plan::Axis::kCp) && !axes.has(plan::Axis::kTp)) return traces::Category::kCpComm;
  return traces::Category::kTpComm;
}

std::int64_t Ps(base::Seconds time) { return base::ToPicoseconds(time).value(); }

std::int64_t Longer(std::int64_t sum_ps, std::int64_t time_ps, const PieceCost& piece) {
  return base::Later(sum_ps, time_ps, [&] { return piece.name; });
}

}  // namespace

std::uint32_t WorkCosts::Intern(const topology::GroupLocality& locality) {
  const auto [at, is_new] =
      known_localities_.try_emplace(locality, static_cast<std::uint32_t>(localities_.size()));
  if (is_new) localities_.push_back(locality);
  return at->second;
}

PieceCost WorkCosts::CostOf(const plan::Segment& segment, const InnerLocalities& places,
                            double speed, std::array<std::int64_t, traces::kNumCategories>& shares,
                            traces::Category category) const {
  PieceCost piece{.name = segment.name, .category = category};
  std::uint32_t place = places.tp;
  if (segment.collective) {
    piece.category = CategoryOf(segment.collective->axes);
    if (piece.category == traces::Category::kCpComm) place = places.cp;
    if (piece.category == traces::Category::kEpComm) place = places.ep;
  }
  const SegmentCost cost = segments_.Cost(segment, localities_[place]);
  const base::Seconds slowed(cost.compute.value() / speed);
  piece.duration_ps = Ps(cost.total + (slowed - cost.compute));
  const std::int64_t exposed = std::min(Ps(cost.exposed), piece.duration_ps);
  const std::int64_t host = std::min(Ps(cost.host), piece.duration_ps - exposed);
  const auto spend = [&](traces::Category on, std::int64_t time_ps) {
    std::int64_t& share = shares[static_cast<std::size_t>(on)];
    share = Longer(share, time_ps, piece);
  };
  spend(piece.category, exposed);
  spend(traces::Category::kHost, host);
  spend(category, piece.duration_ps - exposed - host);
  piece.compute_ps = std::min(Ps(slowed + cost.host), piece.duration_ps);
  piece.communication_ps = std::min(Ps(cost.communication), piece.duration_ps);
  piece.core_ps = std::min(Ps(cost.core), piece.communication_ps);
  return piece;
}

const WorkCost* WorkCosts::Cost(const plan::Work& work, std::uint32_t work_index,
                                const InnerLocalities& places, traces::Category category,
                                double speed) {
  const auto [at, is_new] = known_.try_emplace(Key{work_index, places, speed}, nullptr);
  if (!is_new) return at->second;
  auto cost = std::make_unique<WorkCost>();
  std::array<std::int64_t, traces::kNumCategories> shares{};
  if (op_issue_ > base::Seconds(0) && !work.parts.empty()) {
    const std::int64_t issue = Ps(op_issue_);
    cost->pieces.push_back({.name = "issue",
                            .category = traces::Category::kHost,
                            .duration_ps = issue,
                            .compute_ps = issue});
    cost->order.push_back(0);
    cost->total_ps = issue;
    shares[static_cast<std::size_t>(traces::Category::kHost)] += issue;
  }
  for (const plan::RepeatedSegments& part : work.parts) {
    std::array<std::int64_t, traces::kNumCategories> part_shares{};
    const auto first = static_cast<std::uint32_t>(cost->pieces.size());
    for (const plan::Segment& segment : part.segments) {
      cost->pieces.push_back(CostOf(segment, places, speed, part_shares, category));
    }
    const auto end = static_cast<std::uint32_t>(cost->pieces.size());
    for (int repetition = 0; repetition < part.count; ++repetition) {
      for (std::uint32_t piece = first; piece < end; ++piece) {
        cost->order.push_back(piece);
        cost->total_ps =
            Longer(cost->total_ps, cost->pieces[piece].duration_ps, cost->pieces[piece]);
      }
    }
    for (std::size_t kind = 0; kind < shares.size(); ++kind)
      shares[kind] += part_shares[kind] * part.count;
  }
  for (std::size_t kind = 0; kind < shares.size(); ++kind) {
    if (shares[kind] > 0)
      cost->shares.push_back({static_cast<traces::Category>(kind), shares[kind]});
  }
  at->second = cost.get();
  owner_.push_back(std::move(cost));
  return at->second;
}

}  // namespace isthmus::sim
