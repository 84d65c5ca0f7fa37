#include "plan/build/role_writer.h"

#include <algorithm>

#include "base/check.h"

namespace isthmus::plan {
namespace {

template <typename T>
std::uint32_t Intern(std::vector<T>& known, const T& item) {
  const auto found = std::find(known.begin(), known.end(), item);
  if (found != known.end()) return static_cast<std::uint32_t>(found - known.begin());
  known.push_back(item);
  return static_cast<std::uint32_t>(known.size() - 1);
}

std::uint16_t Narrow16(std::size_t count) {
  ISTHMUS_CHECK(count <= 0xffffU, "{} entries on one op", count);
  return static_cast<std::uint16_t>(count);
}

}  // namespace

SizeId RoleWriter::Size(const SlotKey& key, base::Bytes bytes) {
  const auto [at, is_new] = sizes_.try_emplace(key, static_cast<SizeId>(table_.bytes.size()));
  if (is_new) {
    table_.bytes.push_back(bytes);
  } else {
    ISTHMUS_CHECK(table_.bytes[at->second] == bytes,
                  "a size changed under its name: {} to {} bytes (what {})",
                  table_.bytes[at->second].value(), bytes.value(), key.what);
  }
  return at->second;
}

std::uint32_t RoleWriter::WorkSlot(const SlotKey& key, std::uint32_t work) {
  const auto [at, is_new] =
      works_.try_emplace(key, static_cast<std::uint32_t>(table_.works.size()));
  if (is_new) {
    table_.works.push_back(work);
  } else {
    ISTHMUS_CHECK(table_.works[at->second] == work, "a work changed under its name (what {})",
                  key.what);
  }
  return at->second;
}

std::uint32_t RoleWriter::Span(const SlotKey& key, BlockSpan span,
                               const std::vector<BlockSpan>& parts) {
  const auto known = spans_.find(key);
  if (known != spans_.end()) return known->second;
  span.first_part = static_cast<std::uint32_t>(role_.spans.size());
  span.num_parts = static_cast<std::uint32_t>(parts.size());
  role_.spans.insert(role_.spans.end(), parts.begin(), parts.end());
  role_.spans.push_back(span);
  const auto index = static_cast<std::uint32_t>(role_.spans.size() - 1);
  spans_.emplace(key, index);
  return index;
}

StorageId RoleWriter::AddStorage(const Storage& storage) {
  role_.storages.push_back(storage);
  return static_cast<StorageId>(role_.storages.size() - 1);
}

ValueId RoleWriter::AddValue(const Storage& storage) {
  role_.values.push_back({.storage = AddStorage(storage), .version = 0});
  return static_cast<ValueId>(role_.values.size() - 1);
}

ValueId RoleWriter::NextVersion(ValueId value) {
  const Value& before = role_.values[value];
  role_.values.push_back({.storage = before.storage, .version = before.version + 1});
  return static_cast<ValueId>(role_.values.size() - 1);
}

ValueId RoleWriter::Newest(ValueId value) const {
  const StorageId storage = role_.values[value].storage;
  for (auto newest = static_cast<ValueId>(role_.values.size()); newest-- > value;) {
    if (role_.values[newest].storage == storage) return newest;
  }
  return value;
}

std::uint32_t RoleWriter::Group(const GroupRef& group) { return Intern(role_.groups, group); }
std::uint32_t RoleWriter::Peer(const PeerRef& peer) { return Intern(role_.peers, peer); }

std::uint16_t RoleWriter::CopyLane(CopyDirection direction) {
  const bool to_host = direction == CopyDirection::kToHost;
  return LaneOf(to_host ? LaneKind::kCopyToHost : LaneKind::kCopyToDevice, kNone32);
}

std::uint16_t RoleWriter::LaneOf(LaneKind kind, std::uint32_t group) {
  for (std::size_t lane = 0; lane < role_.lanes.size(); ++lane) {
    if (role_.lanes[lane].kind == kind && role_.lanes[lane].group == group) return Narrow16(lane);
  }
  role_.lanes.push_back({.kind = kind, .group = group});
  return Narrow16(role_.lanes.size() - 1);
}

std::uint32_t RoleWriter::Add(Op op, const std::vector<ValueId>& consumed,
                              const std::vector<ValueId>& produced,
                              const std::vector<Transfer>& transfers) {
  op.first_consumed = static_cast<std::uint32_t>(role_.consumed.size());
  op.num_consumed = Narrow16(consumed.size());
  role_.consumed.insert(role_.consumed.end(), consumed.begin(), consumed.end());
  op.first_produced = static_cast<std::uint32_t>(role_.produced.size());
  op.num_produced = Narrow16(produced.size());
  role_.produced.insert(role_.produced.end(), produced.begin(), produced.end());
  op.first_transfer = static_cast<std::uint32_t>(role_.transfers.size());
  op.num_transfers = Narrow16(transfers.size());
  role_.transfers.insert(role_.transfers.end(), transfers.begin(), transfers.end());
  role_.ops.push_back(op);
  return static_cast<std::uint32_t>(role_.ops.size() - 1);
}

void RoleWriter::Flag(std::uint32_t op, OpFlag flag) {
  role_.ops[op].flags = static_cast<std::uint8_t>(role_.ops[op].flags | flag);
}

}  // namespace isthmus::plan
