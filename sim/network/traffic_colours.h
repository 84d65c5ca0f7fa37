#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/network/traffic_map.h"

namespace isthmus::sim {

/// Which flows and links can't be told apart: the coarsest equitable partition of both, given who
/// causes each shape.
///
/// A flow's colour says who causes it and which colours of links it crosses, a link's colour its
/// bandwidth and how many flows of each colour cross it. Max-min sharing depends on nothing else:
/// links of a colour are full together and flows of a colour get the same rate. Only links that may
/// be short count. Lifetime: the traffic must outlive it.
class TrafficColours {
 public:
  explicit TrafficColours(const Traffic& traffic);

  /// One round: `owners` are the colours of those who cause the shapes, by shape. Returns how many
  /// colours there are now; when it stays the same in a round they are final.
  std::size_t Refine(const std::vector<std::uint64_t>& owners);

  /// What a shape meets on the network, by the colours of its flows and their links.
  std::uint64_t HashOf(std::uint32_t shape) const { return shape_hashes_[shape]; }

  /// The same traffic with one link of each colour and, of each shape in `shapes`, one flow of each
  /// colour; a path names a link as often as flows of its colour cross it. Other shapes are empty.
  Traffic Fold(const std::vector<std::uint32_t>& shapes) const;

 private:
  /// By colours of a flow and a link: how many flows of the one cross each link of the other.
  using Crossings = std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t>;
  std::uint64_t ColourOf(std::uint32_t shape, std::size_t part) const;
  Crossings CountCrossings(
      const std::unordered_map<std::uint64_t, std::uint32_t>& link_of_colour) const;

  const Traffic& traffic_;
  std::vector<std::uint64_t> link_colours_;
  std::vector<std::uint64_t> flow_colours_;  // shape by shape
  std::vector<std::size_t> first_flow_;      // of a shape
  std::vector<std::uint64_t> shape_hashes_;
};

}  // namespace isthmus::sim
