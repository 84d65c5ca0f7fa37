#include "sim/network/traffic_colours.h"

#include <algorithm>
#include <bit>
#include <set>

#include "base/hash.h"

namespace isthmus::sim {
namespace {

std::size_t CountDistinct(std::vector<std::uint64_t> colours) {
  std::sort(colours.begin(), colours.end());
  return static_cast<std::size_t>(std::unique(colours.begin(), colours.end()) - colours.begin());
}

}  // namespace

TrafficColours::TrafficColours(const Traffic& traffic)
    : traffic_(traffic),
      link_colours_(traffic.links.size(), 0),
      shape_hashes_(traffic.shapes.size(), 0) {
  std::size_t num_flows = 0;
  for (const TrafficShape& shape : traffic.shapes) {
    first_flow_.push_back(num_flows);
    num_flows += shape.parts.size();
  }
  flow_colours_.assign(num_flows, 0);
}

std::size_t TrafficColours::Refine(const std::vector<std::uint64_t>& owners) {
  std::vector<std::uint64_t> sums(link_colours_.size(), 0);
  for (std::size_t shape = 0; shape < traffic_.shapes.size(); ++shape) {
    const std::vector<TrafficPart>& parts = traffic_.shapes[shape].parts;
    for (std::size_t part = 0; part < parts.size(); ++part) {
      const TrafficPath& path = traffic_.paths[parts[part].path];
      base::HashBuilder hash;
      hash.Add(owners[shape])
          .Add(std::bit_cast<std::uint64_t>(parts[part].share))
          .Add(std::bit_cast<std::uint64_t>(path.bytes_per_second));
      for (const std::uint32_t link : path.contended) hash.Add(link_colours_[link]);
      flow_colours_[first_flow_[shape] + part] = hash.digest();
      // A sum, since the order of a link's flows means nothing.
      for (const std::uint32_t link : path.contended) sums[link] += hash.digest();
    }
  }
  for (std::size_t link = 0; link < sums.size(); ++link) {
    if (!traffic_.links[link].may_be_short) continue;
    base::HashBuilder hash;
    hash.Add(std::bit_cast<std::uint64_t>(traffic_.links[link].link.bandwidth.value()))
        .Add(sums[link]);
    link_colours_[link] = hash.digest();
  }
  for (std::size_t shape = 0; shape < shape_hashes_.size(); ++shape) {
    std::uint64_t sum = 0;
    for (std::size_t part = 0; part < traffic_.shapes[shape].parts.size(); ++part)
      sum += flow_colours_[first_flow_[shape] + part];
    shape_hashes_[shape] = sum;
  }
  return CountDistinct(link_colours_) + CountDistinct(flow_colours_);
}

std::uint64_t TrafficColours::ColourOf(std::uint32_t shape, std::size_t part) const {
  return flow_colours_[first_flow_[shape] + part];
}

TrafficColours::Crossings TrafficColours::CountCrossings(
    const std::unordered_map<std::uint64_t, std::uint32_t>& link_of_colour) const {
  Crossings crossings;
  for (std::uint32_t shape = 0; shape < traffic_.shapes.size(); ++shape) {
    const std::vector<TrafficPart>& parts = traffic_.shapes[shape].parts;
    for (std::size_t part = 0; part < parts.size(); ++part) {
      for (const std::uint32_t link : traffic_.paths[parts[part].path].contended) {
        const std::uint64_t colour = link_colours_[link];
        if (link_of_colour.at(colour) == link) ++crossings[{ColourOf(shape, part), colour}];
      }
    }
  }
  return crossings;
}

Traffic TrafficColours::Fold(const std::vector<std::uint32_t>& shapes) const {
  Traffic folded;
  folded.shapes.resize(traffic_.shapes.size());
  // The first link of a colour stands for all.
  std::unordered_map<std::uint64_t, std::uint32_t> link_of_colour;
  std::unordered_map<std::uint64_t, std::uint32_t> number_of_colour;
  for (std::uint32_t link = 0; link < link_colours_.size(); ++link) {
    if (!traffic_.links[link].may_be_short) continue;
    if (!link_of_colour.try_emplace(link_colours_[link], link).second) continue;
    number_of_colour.emplace(link_colours_[link], static_cast<std::uint32_t>(folded.links.size()));
    folded.links.push_back(traffic_.links[link]);
  }
  const Crossings crossings = CountCrossings(link_of_colour);
  for (const std::uint32_t shape : shapes) {
    if (!folded.shapes[shape].parts.empty()) continue;
    folded.shapes[shape].seconds_per_byte = traffic_.shapes[shape].seconds_per_byte;
    std::set<std::uint64_t> known;
    for (std::size_t part = 0; part < traffic_.shapes[shape].parts.size(); ++part) {
      const std::uint64_t flow = ColourOf(shape, part);
      if (!known.insert(flow).second) continue;
      TrafficPart one = traffic_.shapes[shape].parts[part];
      const TrafficPath& path = traffic_.paths[one.path];
      TrafficPath few{.bytes_per_second = path.bytes_per_second};
      std::set<std::uint64_t> crossed;
      for (const std::uint32_t link : path.contended) {
        const std::uint64_t colour = link_colours_[link];
        if (!crossed.insert(colour).second) continue;
        few.contended.insert(few.contended.end(), crossings.at({flow, colour}),
                             number_of_colour.at(colour));
      }
      few.links = few.contended;
      one.path = static_cast<std::uint32_t>(folded.paths.size());
      folded.paths.push_back(std::move(few));
      folded.shapes[shape].parts.push_back(one);
    }
  }
  return folded;
}

}  // namespace isthmus::sim
