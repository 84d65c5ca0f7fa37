#include "sim/cost/machine_models.h"

#include <fmt/format.h>

#include "base/error.h"
#include "profiles/kernel_tables.h"
#include "sim/cost/gloo_model.h"
#include "sim/cost/kernel_model.h"
#include "sim/cost/measured_kernel_model.h"
#include "sim/cost/nccl_model.h"

namespace isthmus::sim {
namespace {

// `host.speed.busy_1`, `.busy_2` … as far as they go.
std::vector<double> SpeedsOf(const profiles::Profile& profile) {
  std::vector<double> speeds;
  for (int busy = 1;; ++busy) {
    const std::string key = fmt::format("host.speed.busy_{}", busy);
    if (!profile.has(key)) return speeds;
    const double speed = profile.Number(key);
    if (!(speed > 0 && speed <= 1)) {
      throw base::Error(
          fmt::format("error: parameter {} of profile {} is {}, needs to be in (0, 1]", key,
                      profile.name(), speed));
    }
    speeds.push_back(speed);
  }
}

void CheckFit(const topology::ClusterSpec& cluster, const profiles::Profile& profile) {
  const bool needs_host = cluster.ranks_share == topology::RanksShare::kCores;
  if (needs_host == IsOfHost(profile)) return;
  throw base::Error(
      needs_host
          ? fmt::format("error: ranks of cluster {} compute on the cores of a host, but profile {} "
                        "is of a GPU\n  hint: `isthmus calibrate -o FILE.yaml` measures this "
                        "machine; then give `profile: FILE.yaml`",
                        cluster.name, profile.name())
          : fmt::format("error: ranks of cluster {} compute on GPUs, but profile {} is of a host's "
                        "cores\n  hint: use cluster: cpu-host, or a GPU's profile",
                        cluster.name, profile.name()));
}

}  // namespace

bool IsOfHost(const profiles::Profile& profile) { return profile.has("host.cores"); }

std::unique_ptr<ComputeModel> MakeComputeModel(const profiles::Profile& profile) {
  if (!profiles::KernelTables(profile).empty())
    return std::make_unique<MeasuredKernelModel>(profile);
  return std::make_unique<KernelModel>(profile);
}

MachineModels MakeModels(const topology::ClusterSpec& cluster, const profiles::Profile& profile) {
  CheckFit(cluster, profile);
  MachineModels models;
  models.kernels = MakeComputeModel(profile);
  models.shares_device = cluster.ranks_share != topology::RanksShare::kNothing;
  if (!models.shares_device) {
    models.collectives = std::make_unique<NcclModel>(profile);
    models.segments = std::make_unique<SegmentModel>(profile, *models.kernels, *models.collectives);
    return models;
  }
  const bool on_cores = cluster.ranks_share == topology::RanksShare::kCores;
  models.collectives = std::make_unique<GlooModel>(
      profile, on_cores ? GlooModel::Staging::kNone : GlooModel::Staging::kThroughHost);
  models.segments = std::make_unique<SegmentModel>(*models.kernels, *models.collectives);
  models.op_issue = profile.Time("host.op_issue");
  models.cores = 1;
  if (on_cores) {
    models.cores =
        cluster.cores > 0 ? cluster.cores : static_cast<int>(profile.Count("host.cores"));
    models.speeds = SpeedsOf(profile);
  }
  return models;
}

}  // namespace isthmus::sim
