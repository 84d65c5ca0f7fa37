#pragma once

#include <map>
#include <string>

#include "profiles/profile.h"
#include "sim/cost/collective_model.h"
#include "sim/cost/log_table.h"

namespace isthmus::sim {

/// Communication over Gloo among the processes of one host, as `isthmus calibrate` measured it.
///
///     time = wait(S) + core(S)
///
/// `core` is the processor time that each member's threads take for copies (loopback is copies) and
/// sums, `wait` what is left of the measured time: wake-ups, and steps that members wait through.
/// With fewer cores than members their core times share the cores, which is the engine's business.
/// Both are straight lines between measured sizes, and between measured numbers of ranks; beyond
/// those they grow as the steps of a ring do, with n - 1.
///
/// Where ranks share a GPU, tensors are staged through pinned memory: time gets a copy each way,
/// and no core is counted (a GPU's host has plenty).
///
/// Kinds: all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, p2p. A reduce counts as an
/// all-reduce (which is how it is carried out), all_to_all_v as all_to_all, a ring exchange as a
/// message each way at once: p2p.
/// Source: `gloo.<kind>.ranks_<n>.wait` and `.core`, `gloo.p2p.*`; docs/models/cpu_host.md; pinned
/// by tests/unit/sim/cpu_host_test.cc. Thread-safe: immutable.
class GlooModel : public CollectiveModel {
 public:
  enum class Staging { kNone, kThroughHost };

  /// Throws base::Error if the profile has no `gloo.*`.
  GlooModel(const profiles::Profile& profile, Staging staging);

  base::Seconds Time(plan::CollectiveKind kind, base::Bytes size,
                     const topology::GroupLocality& group) const override;
  base::Seconds P2P(base::Bytes size, const topology::Route& route) const override;
  base::Seconds Copy(base::Bytes size, plan::CopyDirection direction,
                     const topology::Route& route) const override;
  base::Seconds CoreTime(plan::CollectiveKind kind, base::Bytes size,
                         const topology::GroupLocality& group) const override;
  base::Seconds CoreTimeOfP2P(base::Bytes size) const override;

 private:
  /// Of one kind and number of ranks.
  struct Lines {
    LineTable wait;
    LineTable core;
  };
  struct Parts {
    double wait = 0;
    double core = 0;
  };
  Parts PartsOf(plan::CollectiveKind kind, double size, int num_ranks) const;
  double Staged(double size) const;

  std::string profile_name_;
  std::map<std::string, std::map<int, Lines>> collectives_;  // by kind and ranks
  Lines p2p_;
  Staging staging_;
  double copy_latency_ = 0;
  double seconds_per_staged_byte_ = 0;
  double seconds_per_copied_byte_ = 0;
};

}  // namespace isthmus::sim
