#include "topology/internal/switch_paths.h"

#include <functional>
#include <queue>
#include <utility>

namespace isthmus::topology::internal {

SwitchPaths::SwitchPaths(int num_switches, const std::vector<Edge>& edges)
    : num_switches_(static_cast<std::size_t>(num_switches)),
      costs_(num_switches_ * num_switches_, kNone) {
  using Reached = std::pair<std::int64_t, std::size_t>;  // by which cost, what
  std::vector<std::vector<Reached>> neighbours(num_switches_);
  for (const Edge& edge : edges) {
    const auto a = static_cast<std::size_t>(edge.a);
    const auto b = static_cast<std::size_t>(edge.b);
    neighbours[a].emplace_back(edge.cost, b);
    neighbours[b].emplace_back(edge.cost, a);
  }
  for (std::size_t source = 0; source < num_switches_; ++source) {
    std::int64_t* costs = costs_.data() + source * num_switches_;
    std::priority_queue<Reached, std::vector<Reached>, std::greater<>> todo;
    costs[source] = 0;
    todo.emplace(0, source);
    while (!todo.empty()) {
      const auto [cost, at] = todo.top();
      todo.pop();
      if (cost > costs[at]) continue;
      for (const auto& [step, next] : neighbours[at]) {
        if (cost + step >= costs[next]) continue;
        costs[next] = cost + step;
        todo.emplace(costs[next], next);
      }
    }
  }
}

}  // namespace isthmus::topology::internal
