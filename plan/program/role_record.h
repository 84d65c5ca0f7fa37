#pragma once

#include <cstdint>
#include <span>

#include "plan/program/program.h"
#include "traces/trace.h"

namespace isthmus::plan {

/// A role as traces describe it, predicted and measured ones alike: lanes, groups, ops and what
/// they depend on, with the sizes and FLOPs of `table`. `transfer_bytes`: of every transfer of the
/// role, in order. Pieces of blocks and how their time splits are left to whoever knows them.
traces::RoleRecord DescribeRole(const Program& program, const Role& role, const SizeTable& table,
                                std::span<const std::int64_t> transfer_bytes);

}  // namespace isthmus::plan
