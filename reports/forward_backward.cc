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
    if (bound == Bound::kStarts && event.start_ps < start_ps_.value_or(event.start_ps + 1)) {
      start_ps_ = event.start_ps;
      first_class_ = event.rank_class;
      first_op_ = event.op;
    }
    // A forward ends the interval too: a frozen module has nothing after it.
    end_ps_ = std::max(end_ps_.value_or(event.end_ps), event.end_ps);
  }
}

void ForwardBackward::OnTrailer(const traces::Trailer& trailer) {
  if (!start_ps_) return;
  for (const traces::ImposedWait& wait : trailer.waits) {
    const bool is_its = !wait.straggler && wait.rank_class == first_class_ && wait.op == first_op_;
    if (is_its && wait.end_ps == *start_ps_) start_ps_ = std::min(*start_ps_, wait.start_ps);
  }
}

std::optional<std::int64_t> ForwardBackward::duration_ps() const {
  if (!start_ps_) return std::nullopt;
  return *end_ps_ - *start_ps_;
}

}  // namespace isthmus::reports
