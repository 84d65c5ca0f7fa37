#include "sim/engine_setup.h"

#include <cmath>

#include "base/sim_time.h"

namespace isthmus::sim {
namespace {

/// Share of a rank's busy time that it waits for stragglers: nothing within one node.
double StragglerShare(const profiles::Profile& profile, int num_ranks) {
  const double base_gpus = profile.Number("step.straggler_base_gpus");
  if (num_ranks <= base_gpus) return 0;
  return profile.Number("step.straggler_per_doubling") * std::log2(num_ranks / base_gpus);
}

}  // namespace

CostModels CostsOf(const MachineModels& models, const profiles::Profile& profile) {
  CostModels costs{.segments = models.segments.get(), .collectives = models.collectives.get()};
  if (models.shares_device) {
    costs.host_order = HostOrder::kBlocking;
    costs.op_issue = models.op_issue;
  } else {
    costs.host = HostModel(profile);
  }
  return costs;
}

EngineOptions OptionsOf(const MachineModels& models, const profiles::Profile& profile,
                        const SimOptions& options, const Lowered& lowered) {
  EngineOptions engine;
  engine.expanded = options.expansion == Expansion::kExpanded;
  if (models.shares_device) {
    engine.sharing = {.cores_of_device = {models.cores},
                      .speeds = models.speeds,
                      .device_of_class = std::vector<int>(lowered.classes.size(), 0)};
    return engine;
  }
  engine.straggler_share = StragglerShare(profile, lowered.program->num_ranks);
  engine.sync_contention = models.segments->gradient_sync_share();
  engine.step_overhead_ps = base::ToPicoseconds(profile.Time("step.fixed_overhead")).value();
  return engine;
}

}  // namespace isthmus::sim
