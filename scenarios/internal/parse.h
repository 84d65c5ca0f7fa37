#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "scenarios/internal/diagnostics.h"
#include "scenarios/internal/node.h"

namespace isthmus::scenarios::internal {

// Bounds that keep hostile or mistaken files from taking time and memory.
struct ParseLimits {
  std::size_t max_bytes = std::size_t{4} << 20U;
  int max_depth = 24;
  std::size_t max_nodes = 200'000;
};

// Reads one YAML document. `label` is the file's name in messages.
//
// Of YAML everything but anchors, aliases, tags and second documents is taken: a file then means
// the same wherever it is read. Mistakes (syntax, a key twice, binary content, a limit passed) go
// to `diagnostics`, and what was read up to there comes back.
Node ParseYaml(std::string_view content, const std::string& label, Diagnostics& diagnostics,
               const ParseLimits& limits = {});

}  // namespace isthmus::scenarios::internal
