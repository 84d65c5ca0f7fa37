#include "tests/support/max_min_solver.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace isthmus::tests {

void MaxMinSolver::Start(std::int64_t now_ps, std::uint32_t flow,
                         std::span<const std::uint32_t> links, double bytes) {
  AdvanceTo(static_cast<double>(now_ps));
  flows_[flow] = {.links = {links.begin(), links.end()}, .left = bytes};
  Share();
}

std::optional<std::int64_t> MaxMinSolver::NextEnd() {
  std::optional<std::int64_t> next;
  for (const auto& [number, flow] : flows_) {
    const auto end = static_cast<std::int64_t>(std::llround(EndOf(flow)));
    if (!next || end < *next) next = end;
  }
  return next;
}

void MaxMinSolver::TakeEnded(std::int64_t now_ps, std::vector<std::uint32_t>& ended) {
  for (auto next = NextEnd(); next && *next <= now_ps; next = NextEnd()) {
    AdvanceTo(static_cast<double>(*next));
    for (auto at = flows_.begin(); at != flows_.end();) {
      if (std::llround(EndOf(at->second)) > *next) {
        ++at;
        continue;
      }
      ended.push_back(at->first);
      at = flows_.erase(at);
    }
    Share();
  }
  std::sort(ended.begin(), ended.end());
}

void MaxMinSolver::AdvanceTo(double now_ps) {
  for (auto& [number, flow] : flows_) flow.left -= flow.rate * (now_ps - now_ps_) * 1e-12;
  now_ps_ = now_ps;
}

void MaxMinSolver::Share() {
  std::vector<double> left = capacities_;
  std::vector<Flow*> open;
  for (auto& [number, flow] : flows_) open.push_back(&flow);
  while (!open.empty()) {
    std::vector<int> users(left.size(), 0);
    for (const Flow* flow : open)
      for (const std::uint32_t link : flow->links) ++users[link];
    std::size_t fullest = 0;
    double share = std::numeric_limits<double>::infinity();
    for (std::size_t link = 0; link < left.size(); ++link) {
      if (users[link] == 0 || left[link] / users[link] >= share) continue;
      share = left[link] / users[link];
      fullest = link;
    }
    const auto is_held = [&](const Flow* flow) {
      return std::find(flow->links.begin(), flow->links.end(), fullest) != flow->links.end();
    };
    for (Flow* flow : open) {
      if (!is_held(flow)) continue;
      flow->rate = share;
      for (const std::uint32_t link : flow->links) left[link] -= share;
    }
    std::erase_if(open, is_held);
  }
}

}  // namespace isthmus::tests
