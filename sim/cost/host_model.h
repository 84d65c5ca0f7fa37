#pragma once

#include "base/units.h"
#include "plan/model/kernel.h"
#include "plan/program/op.h"
#include "profiles/profile.h"

namespace isthmus::sim {

/// How long a host takes to issue an op: `host.op_issue`, and `host.layer_issue.forward` or
/// `.backward` on top for each layer that is run eagerly (a recomputed layer as forward).
///
/// The default model issues in no time. docs/models/host.md. Thread-safe: immutable.
class HostModel {
 public:
  HostModel() = default;
  explicit HostModel(const profiles::Profile& profile);

  /// `work` is the op's, null for ops without one.
  base::Seconds Issue(const plan::Op& op, const plan::Work* work) const;

 private:
  base::Seconds forward_layer_{0};
  base::Seconds backward_layer_{0};
  base::Seconds op_{0};
};

}  // namespace isthmus::sim
