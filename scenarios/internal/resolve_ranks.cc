#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "scenarios/internal/fields.h"
#include "scenarios/internal/resolve.h"

namespace isthmus::scenarios::internal {
namespace {

std::int64_t CeilDivide(std::int64_t dividend, std::int64_t divisor) {
  return (dividend + divisor - 1) / divisor;
}

std::int64_t GpusOf(const topology::ClusterSpec& cluster) {
  std::int64_t gpus = 0;
  for (const topology::NodeGroup& group : cluster.node_groups) {
    gpus += std::int64_t{group.num_nodes} * group.gpus_per_node;
  }
  return gpus;
}

// Ranks of one data parallel copy of a module.
std::int64_t RanksPerCopy(const LayoutSpec& layout) { return layout.tp * layout.cp * layout.pp; }

std::optional<std::int64_t> KnownRanks(const LayoutSpec& layout) {
  if (layout.dp) return *layout.dp * RanksPerCopy(layout);
  return layout.num_ranks;
}

// How many ranks the layouts ask for when nothing else says it.
std::optional<std::int64_t> RanksOfLayouts(const ScenarioSpec& spec) {
  std::int64_t end = 0;
  for (const ModuleSpec& module : spec.modules) {
    if (module.inherits_layout) continue;
    const auto ranks = KnownRanks(module.layout);
    if (!ranks) return std::nullopt;
    end = std::max(end, module.layout.first_rank + *ranks);
  }
  return end > 0 ? std::optional(end) : std::nullopt;
}

// `nodes` and `num_gpus` from each other, where the cluster has one node group without a count.
bool ResolveSingleGroup(Resolution& resolution, topology::NodeGroup& group) {
  ScenarioSpec& spec = resolution.spec;
  if (!spec.nodes && !spec.num_gpus && spec.on_nodes.empty()) {
    spec.num_gpus = RanksOfLayouts(spec);
    resolution.derived.insert("num_gpus");
    if (!spec.num_gpus) {
      resolution.Complain("nodes", "is missing, and the layouts don't tell how many GPUs there are",
                          "give `nodes`, `num_gpus` or each layout's dp");
      return false;
    }
  }
  if (!spec.nodes) {
    const bool shares = spec.cluster.ranks_share != topology::RanksShare::kNothing;
    const std::int64_t own =
        spec.on_nodes.empty() ? CeilDivide(*spec.num_gpus, group.gpus_per_node) : 0;
    spec.nodes = shares ? 1 : std::max<std::int64_t>(own, HighestNode(spec) + 1);
    resolution.derived.insert("nodes");
  }
  group.num_nodes = static_cast<int>(*spec.nodes);
  return true;
}

bool ResolveCluster(Resolution& resolution) {
  ScenarioSpec& spec = resolution.spec;
  if (spec.cluster.node_groups.empty()) {
    resolution.Complain("cluster.node_groups",
                        "is missing: a cluster needs at least one node group");
    return false;
  }
  topology::NodeGroup& first = spec.cluster.node_groups.front();
  const std::string count_path = fmt::format("cluster.node_groups.{}.num_nodes", first.name);
  const bool is_single = spec.cluster.node_groups.size() == 1;
  if (is_single && !resolution.is_given(count_path)) {
    if (!ResolveSingleGroup(resolution, first)) return false;
    resolution.derived.insert(count_path);
  } else if (spec.nodes && (!is_single || *spec.nodes != first.num_nodes)) {
    resolution.Complain("nodes", "the cluster's node groups say how many nodes there are already",
                        "leave `nodes` out");
    return false;
  }
  if (!CheckOnNodes(resolution)) return false;
  const std::int64_t gpus =
      spec.on_nodes.empty() ? GpusOf(spec.cluster)
                            : static_cast<std::int64_t>(GpusOn(spec.cluster, spec.on_nodes).size());
  const bool places_ranks = !spec.cluster.rank_devices.empty();
  const bool shares = spec.cluster.ranks_share != topology::RanksShare::kNothing;
  const auto room = shares         ? std::int64_t{topology::kMaxSharingRanks}
                    : places_ranks ? static_cast<std::int64_t>(spec.cluster.rank_devices.size())
                                   : gpus;
  if (room > kRankCount.max) {
    resolution.Complain("cluster", fmt::format("has {} GPUs", room),
                        fmt::format("allowed: up to {}", kRankCount.max));
    return false;
  }
  if (!spec.num_gpus) {
    const auto ranks = shares ? RanksOfLayouts(spec) : std::nullopt;
    spec.num_gpus = ranks.value_or(room);
    resolution.derived.insert("num_gpus");
  }
  if (*spec.num_gpus <= room) return true;
  const bool is_on_some = !spec.on_nodes.empty();
  resolution.Complain(is_on_some   ? "on_nodes"
                      : spec.nodes ? "num_gpus"
                                   : "cluster",
                      fmt::format("{} GPUs are asked for, but {} {}", *spec.num_gpus,
                                  is_on_some ? "these nodes have" : "the cluster has", room),
                      "give more `nodes`, or smaller layouts");
  return false;
}

// Where a module's ranks end if it does not say so: at the next module's first rank.
std::int64_t EndOfRoom(const ScenarioSpec& spec, std::int64_t first_rank) {
  std::int64_t end = *spec.num_gpus;
  for (const ModuleSpec& other : spec.modules) {
    if (other.inherits_layout || other.layout.first_rank <= first_rank) continue;
    end = std::min(end, other.layout.first_rank);
  }
  return end;
}

bool ResolveLayout(Resolution& resolution, ModuleSpec& module) {
  LayoutSpec& layout = module.layout;
  const std::string path = ModulePath(module, "layout");
  const std::int64_t per_copy = RanksPerCopy(layout);
  if (!layout.dp) {
    const bool says_ranks = layout.num_ranks.has_value();
    const std::int64_t room =
        says_ranks ? *layout.num_ranks
                   : EndOfRoom(resolution.spec, layout.first_rank) - layout.first_rank;
    if (room <= 0 || room % per_copy != 0) {
      resolution.Complain(
          path,
          fmt::format("tp {} x cp {} x pp {} = {} does not divide the module's {} ranks", layout.tp,
                      layout.cp, layout.pp, per_copy, std::max<std::int64_t>(room, 0)),
          "give dp, or other degrees or `nodes`");
      return false;
    }
    layout.dp = room / per_copy;
    resolution.derived.insert(JoinPath(path, "dp"));
  }
  const std::int64_t ranks = *layout.dp * per_copy;
  if (layout.num_ranks && *layout.num_ranks != ranks) {
    resolution.Complain(
        JoinPath(path, "num_ranks"),
        fmt::format("{} is not tp {} x cp {} x pp {} x dp {} = {}", *layout.num_ranks, layout.tp,
                    layout.cp, layout.pp, *layout.dp, ranks),
        "leave num_ranks or dp out");
    return false;
  }
  if (!layout.num_ranks) resolution.derived.insert(JoinPath(path, "num_ranks"));
  layout.num_ranks = ranks;
  return true;
}

std::string NameAndRange(const ModuleSpec& module) {
  return fmt::format("{} on ranks {}", module.name, ToText(RangeOf(module)));
}

// Complains about ranks that no module has and ranks beyond the last.
void CheckTiling(Resolution& resolution) {
  std::vector<const ModuleSpec*> modules;
  for (const ModuleSpec& module : resolution.spec.modules) {
    if (!module.inherits_layout) modules.push_back(&module);
  }
  std::ranges::stable_sort(modules, {},
                           [](const ModuleSpec* module) { return RangeOf(*module).begin; });
  const std::int64_t world = *resolution.spec.num_gpus;
  std::int64_t covered = 0;
  for (const ModuleSpec* module : modules) {
    const RankRange range = RangeOf(*module);
    const std::string path = ModulePath(*module, "layout");
    if (range.begin > covered) {
      resolution.Complain(
          path, fmt::format("ranks {} belong to no module", ToText({covered, range.begin})),
          "layouts must cover all ranks; change first_rank or dp");
    }
    if (range.end > world) {
      resolution.Complain(
          path,
          fmt::format("ranks {} are asked for, but the job has {} GPUs", ToText(range), world),
          "give smaller degrees or more `nodes`");
    }
    covered = std::max(covered, range.end);
  }
  if (covered < world) {
    resolution.Complain(ModulePath(*modules.back(), "layout"),
                        fmt::format("ranks {} belong to no module", ToText({covered, world})),
                        "layouts must cover all ranks; give larger degrees, fewer `nodes`, or "
                        "`num_gpus`");
  }
}

// The placement of one encoder; nothing, with a diagnostic, for ranges that overlap in part.
std::optional<plan::Placement> PlacementOf(Resolution& resolution, const ModuleSpec& encoder,
                                           const ModuleSpec& decoder) {
  if (encoder.inherits_layout) return plan::Placement::kHomogeneous;
  const RankRange ours = RangeOf(encoder);
  const RankRange theirs = RangeOf(decoder);
  if (ours == theirs) return plan::Placement::kColocated;
  if (ours.end <= theirs.begin || theirs.end <= ours.begin) return plan::Placement::kNonColocated;
  resolution.Complain(
      ModulePath(encoder, "layout"),
      fmt::format("{} and {} overlap in part", NameAndRange(encoder), NameAndRange(decoder)),
      "use the same ranks (colocated), ranks apart (non-colocated), or "
      "`layout: inherit` (homogeneous)");
  return std::nullopt;
}

std::string_view PlacementText(plan::Placement placement) {
  switch (placement) {
    case plan::Placement::kHomogeneous:
      return "homogeneous";
    case plan::Placement::kColocated:
      return "colocated";
    case plan::Placement::kNonColocated:
      return "non-colocated";
  }
  return {};
}

// Islands of encoders must lie apart from each other.
void CheckIslands(Resolution& resolution) {
  const std::vector<ModuleSpec>& modules = resolution.spec.modules;
  for (std::size_t first = 0; first < modules.size(); ++first) {
    for (std::size_t second = first + 1; second < modules.size(); ++second) {
      const RankRange a = RangeOf(modules[first]);
      const RankRange b = RangeOf(modules[second]);
      if (a.end <= b.begin || b.end <= a.begin) continue;
      resolution.Complain(ModulePath(modules[second], "layout"),
                          fmt::format("{} and {} overlap", NameAndRange(modules[second]),
                                      NameAndRange(modules[first])),
                          "give each module its own ranks: set first_rank");
    }
  }
}

}  // namespace

RankRange RangeOf(const ModuleSpec& module) {
  const std::int64_t begin = module.layout.first_rank;
  return {begin, begin + module.layout.num_ranks.value_or(0)};
}

std::string ToText(RankRange range) {
  if (range.end == range.begin + 1) return fmt::format("{}", range.begin);
  return fmt::format("{}-{}", range.begin, range.end - 1);
}

bool ResolveRanks(Resolution& resolution) {
  for (const ModuleSpec& module : resolution.spec.modules) {
    const LayoutSpec& layout = module.layout;
    // Bounded so that no product of degrees can overflow.
    const std::int64_t planes = layout.tp * layout.cp;
    const bool is_small = planes <= kRankCount.max && planes * layout.pp <= kRankCount.max &&
                          RanksPerCopy(layout) * layout.dp.value_or(1) <= kRankCount.max;
    if (is_small || module.inherits_layout) continue;
    resolution.Complain(ModulePath(module, "layout"), "asks for too many ranks",
                        fmt::format("allowed: up to {}", kRankCount.max));
    return false;
  }
  if (!ResolveCluster(resolution)) return false;
  bool is_resolved = true;
  for (ModuleSpec& module : resolution.spec.modules) {
    if (module.inherits_layout) continue;
    is_resolved = ResolveLayout(resolution, module) && is_resolved;
  }
  return is_resolved;
}

plan::Placement ResolvePlacement(Resolution& resolution, const ModuleSpec& decoder) {
  std::optional<plan::Placement> placement;
  const ModuleSpec* first = nullptr;
  for (const ModuleSpec& encoder : resolution.spec.modules) {
    if (&encoder == &decoder) continue;
    const auto own = PlacementOf(resolution, encoder, decoder);
    if (!own) return plan::Placement::kHomogeneous;
    if (placement && *own != *placement) {
      resolution.Complain(
          ModulePath(encoder, "layout"),
          fmt::format("{} is {}, but {} is {}: mixtures are known but not built yet", encoder.name,
                      PlacementText(*own), first->name, PlacementText(*placement)),
          "place all encoders in one way");
      return plan::Placement::kHomogeneous;
    }
    placement = own;
    if (first == nullptr) first = &encoder;
  }
  if (placement == plan::Placement::kNonColocated) CheckIslands(resolution);
  CheckTiling(resolution);
  return placement.value_or(plan::Placement::kHomogeneous);
}

}  // namespace isthmus::scenarios::internal
