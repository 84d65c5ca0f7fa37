#pragma once

#include <optional>
#include <string>

#include "plan/program/program.h"

namespace isthmus::plan {

/// "forward vision.0 mb3 layers 0-11": one op in words.
std::string Describe(const Program& program, const Role& role, const Op& op);
/// The whole program: modules, roles with their ranks, ops by role (repetitions shortened).
std::string PrintProgram(const Program& program);
/// One rank's ops with lanes, peers, group members, bytes.
std::string PrintRank(const Program& program, base::Rank rank);
/// Boundary tables: who holds, needs, sends what.
std::string PrintBoundaries(const Program& program);

}  // namespace isthmus::plan
