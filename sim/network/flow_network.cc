#include "sim/network/flow_network.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/check.h"
#include "base/error.h"
#include "base/sim_time.h"

namespace isthmus::sim {
namespace {

// Bytes at so many seconds each. The one place where it is rounded, so that equal is equal.
std::int64_t PsOf(double bytes, double seconds_per_byte) {
  return base::RoundPicoseconds(bytes * seconds_per_byte * 1e12);
}

std::int64_t LaterBy(std::int64_t now_ps, std::int64_t duration_ps, double bytes) {
  return base::Later(now_ps, duration_ps,
                     [&] { return fmt::format("a message or collective of {:.0f} B", bytes); });
}

}  // namespace

FlowNetwork::FlowNetwork(const Traffic& traffic, MakeSolver make_solver, RecordPort on_end,
                         RecordPort on_start)
    : traffic_(traffic),
      make_solver_(std::move(make_solver)),
      on_end_(std::move(on_end)),
      on_start_(std::move(on_start)),
      links_(traffic.links.size()),
      accounts_(traffic.links.size()) {
  for (std::size_t link = 0; link < links_.size(); ++link)
    links_[link].capacity = std::llround(traffic.links[link].link.bandwidth.value());
  for (const TrafficPath& path : traffic.paths)
    demand_of_path_.push_back(std::llround(path.bytes_per_second));
}

std::int64_t FlowNetwork::WirePs(std::uint32_t shape, double bytes) const {
  return PsOf(bytes, traffic_.shapes[shape].seconds_per_byte);
}

void FlowNetwork::Start(std::int64_t now_ps, std::int64_t delay_ps, std::uint32_t shape,
                        double bytes, plan::Purpose purpose, FlowTag tag) {
  ISTHMUS_CHECK(delay_ps >= 0, "a delay of {} ps", delay_ps);
  const std::uint32_t number = NewBundle();
  Bundle& bundle = bundles_[number];
  bundle.tag = tag;
  bundle.purpose = purpose;
  bundle.shape = shape;
  bundle.bytes = bytes;
  bundle.sequence = next_sequence_++;
  const std::int64_t begin_ps = LaterBy(now_ps, delay_ps, bytes);
  begins_.Push(begin_ps, {number, bundle.epoch});
  next_ps_ = std::min(next_ps_, begin_ps);
}

std::span<const FlowTag> FlowNetwork::Advance(std::int64_t now_ps) {
  over_.clear();
  // What ends makes room before anything begins.
  if (solver_next_ps_ <= now_ps) TakeFromSolver(now_ps);
  while (!ends_.empty() && ends_.next_ps() <= now_ps) {
    const auto end = ends_.Pop();
    if (bundles_[end.payload.bundle].epoch != end.payload.epoch) continue;
    // By index: the place may be taken again while its flows are looked at.
    const std::uint32_t bundle = end.payload.bundle;
    for (std::size_t at = 0;
         bundles_[bundle].epoch == end.payload.epoch && at < bundles_[bundle].flows.size(); ++at) {
      const std::uint32_t flow = bundles_[bundle].flows[at];
      if (flows_[flow].is_active && !flows_[flow].is_shared && flows_[flow].end_ps == end.time_ps)
        EndFlow(flow, now_ps);
    }
  }
  while (!begins_.empty() && begins_.next_ps() <= now_ps)
    Begin(begins_.Pop().payload.bundle, now_ps);
  if (solver_changed_) {
    const std::optional<std::int64_t> next = solver_->NextEnd();
    solver_next_ps_ = next ? std::max(*next, now_ps) : kNever;
    if (next && solver_next_ps_ == kNever)
      throw base::Error(fmt::format("flows that share links end past {}", base::kClockRange));
    solver_changed_ = false;
  }
  FindNext();
  std::sort(over_.begin(), over_.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  tags_.clear();
  for (const auto& [sequence, tag] : over_) tags_.push_back(tag);
  return tags_;
}

void FlowNetwork::FindNext() {
  next_ps_ = solver_next_ps_;
  if (!begins_.empty()) next_ps_ = std::min(next_ps_, begins_.next_ps());
  if (!ends_.empty()) next_ps_ = std::min(next_ps_, ends_.next_ps());
}

void FlowNetwork::Begin(std::uint32_t number, std::int64_t now_ps) {
  const TrafficShape& shape = traffic_.shapes[bundles_[number].shape];
  for (const TrafficPart& part : shape.parts) {
    const std::uint32_t flow = NewFlow();
    flows_[flow].bundle = number;
    flows_[flow].path = part.path;
    flows_[flow].bytes = part.share * bundles_[number].bytes;
    flows_[flow].end_ps =
        LaterBy(now_ps, PsOf(bundles_[number].bytes, part.seconds_per_byte), flows_[flow].bytes);
    bundles_[number].flows.push_back(flow);
  }
  Bundle& bundle = bundles_[number];
  bundle.num_left = static_cast<std::uint32_t>(bundle.flows.size());
  num_flows_ += bundle.num_left;
  if (bundle.num_left == 0) return EndBundle(number);
  for (const std::uint32_t flow : bundle.flows) BeginFlow(flow, now_ps);
  // One event for all flows that end together; mostly all of the bundle.
  std::int64_t pushed = -1;
  for (const std::uint32_t flow : bundle.flows) {
    if (flows_[flow].is_shared || flows_[flow].end_ps == pushed) continue;
    pushed = flows_[flow].end_ps;
    ends_.Push(pushed, {number, bundle.epoch});
  }
}

void FlowNetwork::BeginFlow(std::uint32_t number, std::int64_t now_ps) {
  Flow& flow = flows_[number];
  const TrafficPath& path = traffic_.paths[flow.path];
  flow.is_active = true;
  flow.is_shared = false;
  flow.start_ps = now_ps;
  if (on_start_) on_start_(RecordOf(number, flow.end_ps));
  for (const std::uint32_t link : path.links) {
    if (links_[link].num_on_it++ == 0) links_[link].busy_since_ps = now_ps;
  }
  flow.positions.clear();
  for (std::uint32_t at = 0; at < path.contended.size(); ++at) {
    LinkUse& link = links_[path.contended[at]];
    link.demand += demand_of_path_[flow.path];
    flow.positions.push_back(static_cast<std::uint32_t>(link.flows.size()));
    link.flows.emplace_back(number, at);
  }
  if (!IsShort(path)) return;
  for (const std::uint32_t link : path.contended) {
    if (links_[link].demand <= links_[link].capacity) continue;
    for (const auto& [other, place] : links_[link].flows)
      if (!flows_[other].is_shared) Share(other, now_ps);
  }
}

bool FlowNetwork::IsShort(const TrafficPath& path) const {
  return std::any_of(path.contended.begin(), path.contended.end(), [this](std::uint32_t link) {
    return links_[link].demand > links_[link].capacity;
  });
}

void FlowNetwork::Share(std::uint32_t number, std::int64_t now_ps) {
  if (!solver_) solver_ = make_solver_();
  Flow& flow = flows_[number];
  solver_route_.clear();
  for (const std::uint32_t link : traffic_.paths[flow.path].contended) {
    std::uint32_t& in_solver = links_[link].number_in_solver;
    if (in_solver == plan::kNone32) {
      solver_->AddLink(traffic_.links[link].link.bandwidth.value());
      in_solver = num_links_in_solver_++;
    }
    solver_route_.push_back(in_solver);
  }
  const double left = static_cast<double>(flow.end_ps - now_ps) /
                      static_cast<double>(std::max<std::int64_t>(1, flow.end_ps - flow.start_ps));
  if (flow.bytes > FlowSolver::kMostBytes)
    throw base::Error(
        fmt::format("a message of {:.3g} B shares links with others: over {:.0e} B "
                    "that is not simulated\n  hint: --network nccl",
                    flow.bytes, FlowSolver::kMostBytes));
  solver_->Start(now_ps, number, solver_route_, flow.bytes * left);
  flow.is_shared = true;
  solver_changed_ = true;
  ++num_shared_flows_;
}

void FlowNetwork::TakeFromSolver(std::int64_t now_ps) {
  taken_.clear();
  solver_->TakeEnded(now_ps, taken_);
  solver_changed_ = true;
  for (const std::uint32_t flow : taken_) EndFlow(flow, now_ps);
}

void FlowNetwork::EndFlow(std::uint32_t number, std::int64_t now_ps) {
  Flow& flow = flows_[number];
  const TrafficPath& path = traffic_.paths[flow.path];
  flow.is_active = false;
  Bundle& bundle = bundles_[flow.bundle];
  for (std::uint32_t at = 0; at < path.contended.size(); ++at) {
    LinkUse& link = links_[path.contended[at]];
    link.demand -= demand_of_path_[flow.path];
    const auto [moved, place] = link.flows.back();
    link.flows[flow.positions[at]] = {moved, place};
    flows_[moved].positions[place] = flow.positions[at];
    link.flows.pop_back();
  }
  for (const std::uint32_t link : path.links) {
    LinkAccount& account = accounts_[link];
    (bundle.tag.job == 0 ? account.bytes[static_cast<std::size_t>(bundle.purpose)]
                         : account.other_bytes) += flow.bytes;
    if (--links_[link].num_on_it == 0) account.busy_ps += now_ps - links_[link].busy_since_ps;
  }
  if (on_end_) on_end_(RecordOf(number, now_ps));
  free_flows_.push_back(number);
  if (--bundle.num_left == 0) EndBundle(flow.bundle);
}

void FlowNetwork::EndBundle(std::uint32_t number) {
  Bundle& bundle = bundles_[number];
  over_.emplace_back(bundle.sequence, bundle.tag);
  ++bundle.epoch;
  free_bundles_.push_back(number);
}

FlowRecord FlowNetwork::RecordOf(std::uint32_t number, std::int64_t end_ps) const {
  const Flow& flow = flows_[number];
  const Bundle& bundle = bundles_[flow.bundle];
  return {.number = number,
          .tag = bundle.tag,
          .purpose = bundle.purpose,
          .path = flow.path,
          .bytes = flow.bytes,
          .start_ps = flow.start_ps,
          .end_ps = end_ps,
          .alone_ps = flow.end_ps - flow.start_ps};
}

std::uint32_t FlowNetwork::NewFlow() {
  if (free_flows_.empty()) {
    flows_.emplace_back();
    return static_cast<std::uint32_t>(flows_.size() - 1);
  }
  const std::uint32_t flow = free_flows_.back();
  free_flows_.pop_back();
  return flow;
}

std::uint32_t FlowNetwork::NewBundle() {
  if (free_bundles_.empty()) {
    bundles_.emplace_back();
    return static_cast<std::uint32_t>(bundles_.size() - 1);
  }
  const std::uint32_t bundle = free_bundles_.back();
  free_bundles_.pop_back();
  bundles_[bundle].flows.clear();
  return bundle;
}

}  // namespace isthmus::sim
