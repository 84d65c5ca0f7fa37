#pragma once

#include <memory>
#include <vector>

#include "profiles/profile.h"
#include "sim/cost/collective_model.h"
#include "sim/cost/compute_model.h"
#include "sim/cost/overlap.h"
#include "topology/cluster_spec.h"

namespace isthmus::sim {

/// Whether a profile is of a host's cores, as `isthmus calibrate` writes them (`host.cores`).
bool IsOfHost(const profiles::Profile& profile);

/// Kernels as the profile has them: MeasuredKernelModel or KernelModel.
std::unique_ptr<ComputeModel> MakeComputeModel(const profiles::Profile& profile);

/// The models that price a program on one kind of cluster, and how its ranks share what there is.
///
/// GPUs of their own: NcclModel, overlap. A shared GPU: GlooModel with staging. A shared host:
/// GlooModel. Kernels by MakeComputeModel(). Where ranks share, each waits for its own
/// collectives: nothing runs beside them but other ranks. Move-only; the models refer to each
/// other.
struct MachineModels {
  std::unique_ptr<ComputeModel> kernels;
  std::unique_ptr<CollectiveModel> collectives;
  std::unique_ptr<SegmentModel> segments;
  bool shares_device = false;
  int cores = 0;               // where ranks share: of a host, 1 of a GPU
  std::vector<double> speeds;  // SharedDevice's
  base::Seconds op_issue{0};   // where ranks share: of their own thread, per op
};

/// Throws base::Error where the profile doesn't fit the cluster (a host's for GPUs or the other way
/// round) or lacks a parameter.
MachineModels MakeModels(const topology::ClusterSpec& cluster, const profiles::Profile& profile);

}  // namespace isthmus::sim
