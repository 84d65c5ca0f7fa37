#pragma once

#include <cstdint>

#include "traces/internal/block.h"
#include "traces/proto/trace.pb.h"
#include "traces/trace.h"

/// Header and trailer to and from their stored messages.
namespace isthmus::traces::internal {

/// Ops of a role in one OpTable.
inline constexpr std::size_t kTableOps = 65536;

/// All but the roles, which have blocks of their own; their number is noted.
void Encode(const Header& header, proto::Header& message);
/// Name, lanes, groups and the number of ops.
void Encode(const RoleRecord& role, proto::RoleTable& message);
void Encode(std::span<const OpRecord> ops, proto::OpTable& message);
void Encode(const Trailer& trailer, proto::Trailer& message);

Defect Decode(const proto::Header& message, Header& header);
Defect Decode(const proto::RoleTable& message, RoleRecord& role);
/// Appends to `ops`.
Defect Decode(const proto::OpTable& message, std::vector<OpRecord>& ops);
Defect Decode(const proto::Trailer& message, Trailer& trailer);

}  // namespace isthmus::traces::internal
