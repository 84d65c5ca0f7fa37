#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/trace.h"

namespace isthmus::reports {

enum class OpClass : std::uint8_t { kCompute, kCollective, kP2P, kCopy };

/// What attribution needs of a traces::OpRecord.
struct OpFacts {
  OpClass kind = OpClass::kCompute;
  traces::Category category = traces::Category::kCompute;
  bool on_compute_lane = false;
  std::uint16_t module = 0;
  std::uint16_t edge = 0;  // 1 + index into Header::boundaries; 0: none
  std::int32_t microbatch = -1;
  std::uint32_t name = 0;              // for RunRecord::name
  std::uint32_t group = 0;             // as in OpRecord
  std::uint32_t slot = 0;              // of the op's span; transfer t has slot + 1 + t
  std::uint32_t lane_predecessor = 0;  // 1 + the op before it on its lane; 0: none
  std::uint32_t first_dependency = 0;
  std::uint32_t first_transfer = 0;
  std::uint32_t first_share = 0;
  std::uint16_t num_dependencies = 0;
  std::uint16_t num_transfers = 0;
  std::uint16_t num_shares = 0;
};

struct RoleFacts {
  std::string name;
  std::vector<OpFacts> ops;
  std::vector<std::uint32_t> compute_ops;  // on the compute lane, in host order
  std::vector<std::uint32_t> p2p_ops;      // in host order
  /// In host order, by 2 · local group, + 1 for computes: those meet apart from collectives.
  std::vector<std::vector<std::uint32_t>> ops_of_group;
  std::vector<traces::Dependency> dependencies;
  std::vector<traces::TransferRecord> transfers;
  std::vector<traces::InnerShare> shares;
  std::uint32_t num_slots = 0;

  std::span<const traces::Dependency> dependencies_of(const OpFacts& op) const {
    return {dependencies.data() + op.first_dependency, op.num_dependencies};
  }
  std::span<const traces::TransferRecord> transfers_of(const OpFacts& op) const {
    return {transfers.data() + op.first_transfer, op.num_transfers};
  }
  std::span<const traces::InnerShare> shares_of(const OpFacts& op) const {
    return {shares.data() + op.first_share, op.num_shares};
  }
};

/// When something was ready, started and was over. What never ran stays unrecorded.
struct Span {
  std::int64_t issue = 0;
  std::int64_t start = 0;
  std::int64_t end = std::numeric_limits<std::int64_t>::min();
  bool recorded() const { return end != std::numeric_limits<std::int64_t>::min(); }
};

/// A span of a class: the op itself (a P2P op: its posting), or its transfer `transfer - 1`.
struct SpanRef {
  std::uint32_t rank_class = 0;
  std::uint32_t op = 0;
  std::uint32_t transfer = 0;
};

/// Something that others wait for, and when they can go on.
struct Cause {
  SpanRef ref;
  std::int64_t ready = 0;
  bool found = false;
};

/// A recorded run in the compact form that attribution walks over.
///
/// Invariant: predecessors of an op have smaller indices than the op (others are ignored), so
/// walking back within a class ends.
class RunRecord {
 public:
  explicit RunRecord(const traces::Header& header);

  /// Throws base::Error when the event's class, op or transfer is not in the header.
  void Add(const traces::Event& event);
  /// Call once, after the last event.
  void Finish(const traces::Trailer& trailer);

  std::uint32_t num_classes() const { return static_cast<std::uint32_t>(classes_.size()); }
  const traces::RankClass& rank_class(std::uint32_t index) const { return classes_[index]; }
  const std::vector<RoleFacts>& roles() const { return roles_; }
  const RoleFacts& role_of(std::uint32_t rank_class) const {
    return roles_[classes_[rank_class].role];
  }
  const OpFacts& op(const SpanRef& ref) const { return role_of(ref.rank_class).ops[ref.op]; }
  const std::string& name(const OpFacts& op) const { return *names_[op.name]; }
  const Span& span(const SpanRef& ref) const {
    return spans_[first_span_[ref.rank_class] + op(ref).slot + ref.transfer];
  }
  std::size_t num_spans() const { return spans_.size(); }
  /// Waits of a class by start.
  std::span<const traces::ImposedWait> waits(std::uint32_t rank_class) const {
    return waits_[rank_class];
  }

  /// How long at its end an op took longer for what was synchronised beside it; 0 for most.
  std::int64_t slowdown(const SpanRef& ref) const;

  /// 1 + the boundary between two modules, in either direction; 0 if there is none.
  std::uint16_t EdgeBetween(std::uint16_t module, std::uint16_t other) const;

  /// The predecessor of an op (dependency or lane) that was ready last.
  Cause BindingCause(const SpanRef& ref) const;
  /// What ended last on a class.
  Cause LastEnd(std::uint32_t rank_class) const;
  /// The other side of a transfer, if it was recorded; `ready` is its issue.
  Cause OtherSide(const SpanRef& transfer) const;
  /// The member of a matched op or collective that was issued last (ties: the op itself, then the
  /// lowest class); `ready` is its issue.
  Cause LastArrival(const SpanRef& ref) const;

 private:
  // Transfers that took place between a class and another, in one direction, in host order.
  struct Channel {
    std::uint32_t peer_class = 0;
    bool sends = false;
    std::vector<std::uint64_t> transfers;  // keys
  };
  static std::uint64_t TransferKey(std::uint32_t op, std::uint32_t transfer) {
    return std::uint64_t{op} << 32U | transfer;
  }

  void AddRole(const traces::RoleRecord& record, const traces::Header& header);
  void AddOp(const traces::OpRecord& source, RoleFacts& role);
  std::uint32_t Intern(const std::string& name);
  void TakeSlowdowns(const traces::Trailer& trailer);
  void BuildChannels(std::uint32_t rank_class);
  const Channel* FindChannel(std::uint32_t rank_class, std::uint32_t peer, bool sends) const;
  std::span<const std::uint32_t> OpsOn(std::uint32_t rank_class, std::uint32_t communicator,
                                       bool compute, std::vector<std::uint32_t>& merged) const;
  Cause Ready(std::uint32_t rank_class, const traces::Dependency& dependency) const;
  Cause Freed(const SpanRef& ref) const;

  std::vector<RoleFacts> roles_;
  std::vector<traces::RankClass> classes_;  // without their members
  std::vector<std::vector<std::uint32_t>> groups_;
  std::unordered_map<std::string, std::uint32_t> number_of_name_;  // looked up, never walked
  std::vector<const std::string*> names_;                          // its keys, by number
  std::size_t num_modules_ = 0;
  std::vector<std::uint16_t> edges_;     // EdgeBetween, row by row
  std::vector<std::size_t> first_span_;  // by class
  std::vector<Span> spans_;
  std::vector<std::vector<traces::ImposedWait>> waits_;  // by class
  std::vector<std::vector<std::pair<std::uint32_t, std::int64_t>>>
      slowdowns_;                               // by class: (op, duration), by op
  std::vector<std::vector<Channel>> channels_;  // by class
};

}  // namespace isthmus::reports
