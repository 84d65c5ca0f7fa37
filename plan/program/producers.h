#pragma once

#include <cstdint>
#include <vector>

#include "plan/program/program.h"

namespace isthmus::plan {

/// Who makes a value ready.
struct Producer {
  std::uint32_t op = kNone32;        // kNone32: it is there from the start
  std::uint32_t transfer = kNone32;  // index into Role::transfers when a message brings it
};

/// Producers of a role's values, by ValueId. Cost: O(ops + transfers).
std::vector<Producer> ProducersOf(const Role& role);

}  // namespace isthmus::plan
