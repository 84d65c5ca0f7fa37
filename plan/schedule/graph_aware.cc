#include "plan/schedule/graph_aware.h"

#include <algorithm>

#include "base/check.h"

namespace isthmus::plan {
namespace {

/// Longest path, in stages, through the modules before (or behind) `module`, itself not counted.
int LongestBeyond(int module, const std::vector<int>& stages, const std::vector<Edge>& edges,
                  bool behind, int depth) {
  ISTHMUS_CHECK(depth <= static_cast<int>(stages.size()), "module graph has a cycle");
  int longest = 0;
  for (const Edge& edge : edges) {
    const int here = behind ? edge.from : edge.to;
    const int there = behind ? edge.to : edge.from;
    if (here != module) continue;
    longest = std::max(longest, stages[static_cast<std::size_t>(there)] +
                                    LongestBeyond(there, stages, edges, behind, depth + 1));
  }
  return longest;
}

}  // namespace

std::vector<std::vector<int>> WarmupDepths(const std::vector<int>& stages_of_module,
                                           const std::vector<Edge>& edges, WarmupRule rule) {
  const int num_modules = static_cast<int>(stages_of_module.size());
  int total = 0;
  for (int module = 0; module < num_modules; ++module) {
    total = std::max(total, stages_of_module[static_cast<std::size_t>(module)] +
                                LongestBeyond(module, stages_of_module, edges, true, 0));
  }
  std::vector<std::vector<int>> depths;
  for (int module = 0; module < num_modules; ++module) {
    const int stages = stages_of_module[static_cast<std::size_t>(module)];
    std::vector<int>& of_module = depths.emplace_back();
    const int behind = LongestBeyond(module, stages_of_module, edges, true, 0);
    const int before = LongestBeyond(module, stages_of_module, edges, false, 0);
    for (int stage = 0; stage < stages; ++stage) {
      const int to_sink = behind + stages - 1 - stage;
      const int from_source = total - (before + stage) - 1;
      of_module.push_back(rule == WarmupRule::kDistanceToSink ? to_sink : from_source);
    }
  }
  return depths;
}

}  // namespace isthmus::plan
