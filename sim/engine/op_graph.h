#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/program/program.h"

namespace isthmus::sim {

/// How a rank's host goes through its ops.
enum class HostOrder : std::uint8_t {
  kAhead,     // it issues ops and runs ahead of the device; only blocking ops hold it up
  kBlocking,  // it runs Compute, Optimizer and Copy ops itself and waits for what an op consumes
              // before it comes to the next; collectives and messages go on beside it
};

/// What must be over before what, inside one role: its lanes and values turned into counts and
/// lists.
///
/// An op is ready when `num_prerequisites` releases have come: from the op before it on its lane
/// (at that op's end, or when it has posted if it is a P2P op), from producers of values it
/// consumes (an op's end, or the end of one transfer), and from a blocking op before it in host
/// order; with HostOrder::kBlocking from all that the host has to do and wait for before it comes
/// to the op. Immutable. Memory: about 12 bytes an op and 4 a dependency.
class OpGraph {
 public:
  explicit OpGraph(const plan::Role& role, HostOrder host_order = HostOrder::kAhead);

  std::size_t num_ops() const { return prerequisites_.size(); }
  std::span<const std::uint16_t> num_prerequisites() const { return prerequisites_; }
  /// Ops to release when `op` is over (a P2P op: when all its transfers are).
  std::span<const std::uint32_t> AfterOp(std::uint32_t op) const { return after_op_.of(op); }
  /// Ops to release when a transfer is over; index into Role::transfers.
  std::span<const std::uint32_t> AfterTransfer(std::uint32_t transfer) const {
    return after_transfer_.of(transfer);
  }
  /// The op that may start on the lane once P2P op `op` has posted; kNone32 if none.
  std::uint32_t AfterPost(std::uint32_t op) const { return after_post_[op]; }
  /// The op that a transfer belongs to.
  std::uint32_t OpOfTransfer(std::uint32_t transfer) const { return op_of_transfer_[transfer]; }

 private:
  /// Lists of ops by key, in one array.
  struct Lists {
    std::vector<std::uint32_t> first;
    std::vector<std::uint32_t> items;
    std::span<const std::uint32_t> of(std::uint32_t key) const {
      return {items.data() + first[key], items.data() + first[key + 1]};
    }
  };
  static Lists Gather(std::size_t num_keys,
                      const std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs);

  std::vector<std::uint16_t> prerequisites_;
  Lists after_op_;
  Lists after_transfer_;
  std::vector<std::uint32_t> after_post_;
  std::vector<std::uint32_t> op_of_transfer_;
};

}  // namespace isthmus::sim
