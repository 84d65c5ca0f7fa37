#include "sim/cost/host_model.h"

namespace isthmus::sim {

HostModel::HostModel(const profiles::Profile& profile)
    : forward_layer_(profile.Time("host.layer_issue.forward")),
      backward_layer_(profile.Time("host.layer_issue.backward")),
      op_(profile.Time("host.op_issue")) {}

base::Seconds HostModel::Issue(const plan::Op& op, const plan::Work* work) const {
  if (op.kind != plan::OpKind::kCompute || work == nullptr) return op_;
  const bool is_forward =
      op.action() == plan::Action::kForward || op.action() == plan::Action::kRecompute;
  const base::Seconds layer = is_forward ? forward_layer_ : backward_layer_;
  return op_ + layer * work->eager_layers;
}

}  // namespace isthmus::sim
