#include "reports/forward_backward.h"

#include <algorithm>

namespace isthmus::reports {

void ForwardBackward::OnHeader(const traces::Header& header) {
  for (const traces::RankClass& rank_class : header.classes) {
    role_of_class_.push_back(rank_class.role);
  }
  for (const traces::RoleRecord& role : header.roles) {
    std::vector<Bound>& bounds = bounds_.emplace_back(role.ops.size(), Bound::kNone);
    for (std::size_t index = 0; index < role.ops.size(); ++index) {
      const traces::OpRecord& op = role.ops[index];
      if (op.step != header.num_steps - 1) continue;
      const bool reduces_gradients = op.category == traces::Category::kDpComm &&
                                     (op.action == "reduce_scatter" || op.action == "all_reduce");
      if (op.kind == "compute") {
        bounds[index] = op.action == "forward" ? Bound::kStarts : Bound::kEnds;
      } else if (reduces_gradients) {
        bounds[index] = Bound::kEnds;
      }
    }
  }
}

void ForwardBackward::OnEvents(std::span<const traces::Event> events) {
  for (const traces::Event& event : events) {
    if (event.inner != 0) continue;
    const Bound bound = bounds_[role_of_class_[event.rank_class]][event.op];
    if (bound == Bound::kNone) continue;
    if (bound == Bound::kStarts) {
      const FirstForward here{event.op, event.start_ps};
      FirstForward& first = first_forwards_.try_emplace(event.rank_class, here).first->second;
      if (here.start_ps < first.start_ps) first = here;
    }
    // A forward ends the interval too: a frozen module has nothing after it.
    end_ps_ = std::max(end_ps_.value_or(event.end_ps), event.end_ps);
  }
}

void ForwardBackward::OnTrailer(const traces::Trailer& trailer) {
  for (const traces::ImposedWait& wait : trailer.waits) {
    const auto at = first_forwards_.find(wait.rank_class);
    if (wait.straggler || at == first_forwards_.end()) continue;
    FirstForward& first = at->second;
    const bool is_its = wait.op == first.op && wait.end_ps == first.start_ps;
    if (is_its) first.start_ps = std::min(first.start_ps, wait.start_ps);
  }
}

std::optional<std::int64_t> ForwardBackward::duration_ps() const {
  if (first_forwards_.empty()) return std::nullopt;
  std::int64_t start_ps = first_forwards_.begin()->second.start_ps;
  for (const auto& [rank_class, first] : first_forwards_) {
    start_ps = std::min(start_ps, first.start_ps);
  }
  return *end_ps_ - start_ps;
}

}  // namespace isthmus::reports
