#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "plan/program/program.h"

namespace isthmus::studies::internal {

// By index of the work, how often a rank runs it in all steps.
using WorkCounts = std::map<std::uint32_t, std::int64_t>;

// Of each kind of rank (role and table of sizes), in the order of ranks.
std::vector<WorkCounts> CountWorks(const plan::Program& program);

}  // namespace isthmus::studies::internal
