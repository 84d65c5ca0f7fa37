#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/program/program.h"

namespace isthmus::plan::internal {

/// How collectives of different communicators stand to each other on one rank.
enum class IssueOrder : std::uint8_t {
  kLanes,   // each communicator has its own lane; across lanes only values order them
  kSerial,  // one at a time in host order, whatever the communicator
};

/// What has to happen before each op of a role may start; shared by all ranks of the role.
///
/// An op waits for the producers of the values it consumes, for the op before it on its lane (a P2P
/// op frees its lane once it is posted), and for the last op before it that blocks the host. A
/// value that a transfer delivers is ready at the end of that transfer.
class OrderGraph {
 public:
  OrderGraph(const Role& role, IssueOrder order);

  /// By op: how many events it waits for.
  const std::vector<std::uint16_t>& prerequisites() const { return prerequisites_; }
  /// Ops that wait for the end of an op, for a P2P op to be posted, for the end of a transfer.
  std::span<const std::uint32_t> after_op(std::uint32_t op) const { return List(after_op_, op); }
  std::span<const std::uint32_t> after_post(std::uint32_t op) const {
    return List(after_post_, op);
  }
  std::span<const std::uint32_t> after_transfer(std::uint32_t transfer) const {
    return List(after_transfer_, transfer);
  }
  std::uint32_t op_of_transfer(std::uint32_t transfer) const { return op_of_transfer_[transfer]; }

 private:
  struct Lists {
    std::vector<std::uint32_t> first;  // by event, and the end
    std::vector<std::uint32_t> ops;
  };
  struct Edge {
    std::uint32_t event = 0;
    std::uint32_t op = 0;
  };
  class Builder;

  static Lists Pack(const std::vector<Edge>& edges, std::size_t num_events);
  static std::span<const std::uint32_t> List(const Lists& lists, std::uint32_t event) {
    return {lists.ops.data() + lists.first[event], lists.first[event + 1] - lists.first[event]};
  }

  std::vector<std::uint16_t> prerequisites_;
  Lists after_op_;
  Lists after_post_;
  Lists after_transfer_;
  std::vector<std::uint32_t> op_of_transfer_;
};

}  // namespace isthmus::plan::internal
