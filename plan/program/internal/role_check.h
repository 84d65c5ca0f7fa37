#pragma once

#include <string>
#include <vector>

#include "plan/program/program.h"

namespace isthmus::plan::internal {

/// The proofs that concern one role alone: whether everything named exists. Nothing else may be
/// checked on a program that fails.
std::vector<std::string> CheckReferences(const Program& program, const Role& role);

/// Each version of a value is produced once, before it is consumed, from the version before it, and
/// isn't consumed any more once the next one is there. Sends consume what they send, receives are
/// produced by their op.
std::vector<std::string> CheckValues(const Program& program, const Role& role);

/// In each step a module's microbatch runs forward before backward, each block once; where a module
/// has a backward at all, every microbatch that ran forward has one; a backward that left its
/// weight gradient for later gets it.
std::vector<std::string> CheckForwardBeforeBackward(const Program& program, const Role& role);

/// Microbatches (of each chunk) whose activations are held at a time, per module, within what the
/// schedule allows: one more than its warm-up depth.
std::vector<std::string> CheckInFlight(const Program& program, const Role& role);

}  // namespace isthmus::plan::internal
