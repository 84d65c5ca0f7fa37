#include <algorithm>
#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "base/text.h"
#include "base/utf8.h"
#include "topology/describe.h"

namespace isthmus::topology {
std::string DescribeRoute(const Cluster& cluster, base::Rank from, base::Rank to) {
  const base::DeviceId source = cluster.DeviceOf(from);
  const base::DeviceId target = cluster.DeviceOf(to);
  const Route route = cluster.RouteBetween(source, target);
  std::string text =
      fmt::format("rank {} on {} to rank {} on {}: {}", from.value(), LabelOf(cluster, source),
                  to.value(), LabelOf(cluster, target), NameOf(route.Kind()));
  if (route.links.empty()) return text + ", no link is crossed\n";
  text += fmt::format(", {} links\n", route.links.size());
  std::size_t from_width = 18;
  std::size_t to_width = 17;
  for (const Link& link : route.links) {
    from_width = std::max(from_width, base::NumCharacters(LabelOf(cluster, link.from)));
    to_width = std::max(to_width, base::NumCharacters(LabelOf(cluster, link.to)));
  }
  for (const Link& link : route.links) {
    text +=
        fmt::format("  {:<8}{:<{}} -> {:<{}}  {:>9}  {:>8}\n", NameOf(link.kind),
                    LabelOf(cluster, link.from), from_width, LabelOf(cluster, link.to), to_width,
                    base::FormatRate(link.bandwidth), base::FormatSeconds(link.latency));
  }
  return text + fmt::format("bottleneck {}, latency {}\n",
                            base::FormatRate(route.Bandwidth().value()),
                            base::FormatSeconds(route.Latency()));
}

}  // namespace isthmus::topology
