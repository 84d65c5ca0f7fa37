#include "studies/internal/bottleneck_links.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "sim/network/traffic_map.h"
#include "topology/describe.h"
#include "traces/trace.h"

namespace isthmus::studies::internal {
namespace {

struct LinkName {
  std::string kind;
  std::string link;
};

class Shapes {
 public:
  Shapes(const plan::Program& program, const topology::Cluster& cluster)
      : program_(program), cluster_(cluster), map_(cluster) {}

  // What a piece puts on the network; nothing if it is no traffic between devices.
  std::optional<std::uint32_t> ShapeOf(const reports::PathSegment& piece) {
    if (piece.kind == "wait") return std::nullopt;
    const base::Rank rank(piece.rank);
    const plan::Role& role = program_.role(rank);
    const plan::Op& op = role.ops[piece.op_index];
    switch (op.kind) {
      case plan::OpKind::kCollective:
        return Collective(op.collective(), rank, role.groups[op.group]);
      case plan::OpKind::kP2P:
        if (piece.transfer == 0) return std::nullopt;
        return Message(rank, role, role.transfers_of(op)[piece.transfer - 1]);
      case plan::OpKind::kCopy:
        return map_.Copy(cluster_.DeviceOf(rank), op.copy());
      case plan::OpKind::kCompute:
        return Inside(piece.category, rank, op);
      default:
        return std::nullopt;
    }
  }

  sim::Traffic Settled() { return std::move(map_).Settled(); }

 private:
  std::optional<std::uint32_t> Collective(plan::CollectiveKind kind, base::Rank rank,
                                          const plan::GroupRef& group) {
    std::vector<base::DeviceId> gpus;
    for (const base::Rank member : program_.Members(rank, group)) {
      gpus.push_back(cluster_.DeviceOf(member));
    }
    std::vector<base::DeviceId> distinct = gpus;
    std::ranges::sort(distinct);
    if (gpus.size() < 2 || std::ranges::adjacent_find(distinct) != distinct.end()) {
      return std::nullopt;
    }
    return map_.Collective(kind, gpus);
  }

  std::optional<std::uint32_t> Message(base::Rank rank, const plan::Role& role,
                                       const plan::Transfer& transfer) {
    const base::DeviceId here = cluster_.DeviceOf(rank);
    const base::DeviceId there = cluster_.DeviceOf(program_.Peer(rank, role.peers[transfer.peer]));
    if (here == there) return std::nullopt;
    return transfer.sends ? map_.Message(here, there) : map_.Message(there, here);
  }

  // Communication inside a block.
  std::optional<std::uint32_t> Inside(std::string_view category, base::Rank rank,
                                      const plan::Op& op) {
    const auto along = [&](plan::Axis axis, plan::CollectiveKind kind) {
      return Collective(kind, rank, {.module = op.module, .axes = axis});
    };
    if (category == traces::ToText(traces::Category::kTpComm)) {
      return along(plan::Axis::kTp, plan::CollectiveKind::kAllGather);
    }
    if (category == traces::ToText(traces::Category::kCpComm)) {
      return along(plan::Axis::kCp, plan::CollectiveKind::kRingExchange);
    }
    if (category == traces::ToText(traces::Category::kEpComm)) {
      return along(plan::Axis::kEp, plan::CollectiveKind::kAllToAll);
    }
    return std::nullopt;
  }

  const plan::Program& program_;
  const topology::Cluster& cluster_;
  sim::TrafficMap map_;
};

LinkName Busiest(const sim::TrafficShape& shape, const sim::Traffic& traffic,
                 const topology::Cluster& cluster) {
  std::map<std::uint32_t, double> seconds_per_byte;  // by link
  for (const sim::TrafficPart& part : shape.parts) {
    for (const std::uint32_t link : traffic.paths[part.path].links) {
      seconds_per_byte[link] += part.share / traffic.links[link].link.bandwidth.value();
    }
  }
  if (seconds_per_byte.empty()) return {};
  const auto longest = std::ranges::max_element(
      seconds_per_byte, [](const auto& a, const auto& b) { return a.second < b.second; });
  // Rings load both directions of a cable alike: that is one link to people.
  constexpr double kNearly = 1 - 1e-9;  // sums in another order
  std::set<std::pair<base::DeviceId, base::DeviceId>> busiest;
  bool goes_both_ways = false;
  for (const auto& [number, seconds] : seconds_per_byte) {
    if (seconds < longest->second * kNearly) continue;
    const topology::Link& link = traffic.links[number].link;
    const bool is_new = busiest.emplace(std::minmax(link.from, link.to)).second;
    goes_both_ways = goes_both_ways || !is_new;
  }
  const topology::Link& link = traffic.links[longest->first].link;
  LinkName name{std::string(topology::NameOf(link.kind)), {}};
  if (busiest.size() == 1) {
    name.link = fmt::format("{} {} {}", topology::LabelOf(cluster, link.from),
                            goes_both_ways ? "<->" : "->", topology::LabelOf(cluster, link.to));
  }
  return name;
}

}  // namespace

void NameBottleneckLinks(const plan::Program& program, const topology::Cluster& cluster,
                         std::vector<reports::PathSegment>& path) {
  if (cluster.spec().ranks_share != topology::RanksShare::kNothing) return;
  Shapes shapes(program, cluster);
  std::vector<std::optional<std::uint32_t>> shape_of_piece;
  shape_of_piece.reserve(path.size());
  for (const reports::PathSegment& piece : path) shape_of_piece.push_back(shapes.ShapeOf(piece));
  const sim::Traffic traffic = shapes.Settled();
  std::vector<std::optional<LinkName>> names(traffic.shapes.size());
  for (std::size_t index = 0; index < path.size(); ++index) {
    if (!shape_of_piece[index]) continue;
    std::optional<LinkName>& name = names[*shape_of_piece[index]];
    if (!name) name = Busiest(traffic.shapes[*shape_of_piece[index]], traffic, cluster);
    path[index].link_kind = name->kind;
    path[index].link = name->link;
  }
}

}  // namespace isthmus::studies::internal
