#pragma once

#include <string>

#include "scenarios/internal/node.h"

namespace isthmus::scenarios::internal {

enum class Comments { kNone, kOrigins };

// A tree as YAML text that ParseYaml reads back as the same tree. Lists of single values and small
// maps of them lie in one line. With kOrigins each value's origin stands beside it, aligned.
std::string PrintYaml(const Node& tree, Comments comments);

}  // namespace isthmus::scenarios::internal
