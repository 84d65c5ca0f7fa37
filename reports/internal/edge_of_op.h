#pragma once

#include <cstdint>
#include <string>

#include "traces/trace.h"

namespace isthmus::reports {

/// 1 + the index into Header::boundaries of the edge a boundary op belongs to; 0 for other ops.
///
/// By the text "from->to" in the op's group or name; else the edge out of the op's module, else the
/// edge into it; of several, the first. (A transfer whose other side is known goes by EdgeBetween.)
std::uint16_t EdgeOfOp(const traces::OpRecord& op, const traces::RoleRecord& role,
                       const traces::Header& header);

/// 1 + the index of the edge between two modules, in either direction; 0 if there is none.
std::uint16_t EdgeBetweenNames(const std::string& module, const std::string& other,
                               const traces::Header& header);

}  // namespace isthmus::reports
