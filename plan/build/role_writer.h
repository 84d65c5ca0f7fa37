#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plan/program/program.h"

namespace isthmus::plan {

/// Names a size or work within a role, so that ranks of one role with other sizes get the same ids.
struct SlotKey {
  std::uint16_t what = 0;  // SlotName
  std::uint16_t module = 0;
  std::uint16_t chunk = 0;
  std::uint16_t block = 0;
  std::uint32_t extra = 0;
  std::int32_t microbatch = -1;  // where sizes differ by microbatch
  friend auto operator<=>(const SlotKey&, const SlotKey&) = default;
};

/// Writes one role and its size table op by op.
///
/// Keeps the bookkeeping out of the schedules: lanes, groups and peers are interned, sizes are
/// named by key, values and storages get their ids in the order of their creation. Not thread-safe.
class RoleWriter {
 public:
  explicit RoleWriter(std::string name) { role_.name = std::move(name); }

  /// A size by name. Needs equal bytes whenever the same key comes again.
  SizeId Size(const SlotKey& key, base::Bytes bytes);
  /// A work by name; `work` is an index into Program::works.
  std::uint32_t WorkSlot(const SlotKey& key, std::uint32_t work);

  /// A span by name, as sizes; `parts` are the spans of a forward's backward.
  std::uint32_t Span(const SlotKey& key, BlockSpan span, const std::vector<BlockSpan>& parts = {});

  StorageId AddStorage(const Storage& storage);
  /// Version 0 of a new storage.
  ValueId AddValue(const Storage& storage);
  /// The version after `value` of the same storage.
  ValueId NextVersion(ValueId value);
  /// The newest version of the storage of `value`. Cost: O(values).
  ValueId Newest(ValueId value) const;

  std::uint32_t Group(const GroupRef& group);
  std::uint32_t Peer(const PeerRef& peer);
  std::uint16_t ComputeLane() { return LaneOf(LaneKind::kCompute, kNone32); }
  std::uint16_t P2PLane() { return LaneOf(LaneKind::kP2P, kNone32); }
  std::uint16_t CopyLane(CopyDirection direction);
  std::uint16_t CommunicatorLane(std::uint32_t group) {
    return LaneOf(LaneKind::kCommunicator, group);
  }

  /// Appends an op; lists may be empty. Returns its index.
  std::uint32_t Add(Op op, const std::vector<ValueId>& consumed,
                    const std::vector<ValueId>& produced,
                    const std::vector<Transfer>& transfers = {});
  /// Sets a flag of an op that is already there.
  void Flag(std::uint32_t op, OpFlag flag);

  std::uint32_t num_ops() const { return static_cast<std::uint32_t>(role_.ops.size()); }
  const Role& role() const { return role_; }
  Role TakeRole() { return std::move(role_); }
  SizeTable TakeTable() { return std::move(table_); }

 private:
  std::uint16_t LaneOf(LaneKind kind, std::uint32_t group);

  Role role_;
  SizeTable table_;
  std::map<SlotKey, SizeId> sizes_;
  std::map<SlotKey, std::uint32_t> works_;
  std::map<SlotKey, std::uint32_t> spans_;
};

}  // namespace isthmus::plan
