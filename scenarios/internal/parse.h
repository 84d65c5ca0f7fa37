#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "scenarios/internal/diagnostics.h"
#include "scenarios/internal/node.h"

namespace isthmus::scenarios::internal {

// Bounds that keep hostile or mistaken files from taking time and memory.
struct ParseLimits {
  std::size_t max_bytes = std::size_t{1} << 20U;
  int max_depth = 24;
  std::size_t max_nodes = 50'000;
};

// Reads one YAML document. `label` is the file's name in messages.
//
// Of YAML everything but anchors, aliases, tags and second documents is taken: a file then means
// the same wherever it is read. Mistakes go to `diagnostics`. A key that is there twice keeps its
// first value; after any other mistake (syntax, binary content, a limit passed) null comes back.
Node ParseYaml(std::string_view content, const std::string& label, Diagnostics& diagnostics,
               const ParseLimits& limits = {});

}  // namespace isthmus::scenarios::internal
