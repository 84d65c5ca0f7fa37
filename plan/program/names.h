#pragma once

#include <string>

#include "plan/program/program.h"

namespace isthmus::plan {

/// The words that traces use for what is in a program: the same for predicted and measured ones.
const char* ToText(OpKind kind);    // "compute", "p2p", …
const char* ToText(LaneKind kind);  // "communicator", "copy_to_host", …
/// What an op does, by its kind: "forward", "all_reduce", "exchange", "to_host", "step".
std::string ActionName(const Op& op);
/// "llm tp+cp", "vision->llm 0", "llm embedding", "world".
std::string GroupName(const Program& program, const GroupRef& group);
/// The same on all members of the group: "vision->llm", since each rank numbers an edge's groups
/// for itself. With the members it names one communicator.
std::string SharedGroupName(const Program& program, const GroupRef& group);

}  // namespace isthmus::plan
