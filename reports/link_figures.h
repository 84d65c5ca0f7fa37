#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// What crossed the links of a network: figures that a simulation with flows gives beside its
/// trace.
namespace isthmus::reports {

/// Bytes by what they were for ("pipeline", "gradient_sync" …, "other_jobs"); those that are zero
/// are left out.
using Traffic = std::vector<std::pair<std::string, std::int64_t>>;

/// One direction of a link.
struct LinkUse {
  std::string kind;  // "nvlink", "pcie", "nic", "uplink", "core"
  std::string from;
  std::string to;
  double bytes_per_second = 0;
  std::int64_t bytes = 0;
  Traffic traffic;
  double utilisation = 0;         // bytes over what it could have carried in the whole run
  double busy_s = 0;              // while anything was on it
  std::vector<double> over_time;  // utilisation by bin
};

/// All links of a kind that anything crossed.
struct LinkKindUse {
  std::string kind;
  std::int64_t num_links = 0;
  std::int64_t bytes = 0;
  Traffic traffic;
  double utilisation = 0;          // mean over the links
  double highest_utilisation = 0;  // of one link
  std::vector<double> over_time;   // mean utilisation by bin
};

/// Whose flows: a module's, what for, and by which operation ("exchange", "all_gather" …).
struct FlowCause {
  std::string job = {};  // empty: the one that figures are of
  std::string module;
  std::string purpose;
  std::string action;
};

/// What flows of one cause lost to flows of another on links of one kind.
struct LinkLossFigure {
  FlowCause victim;
  FlowCause culprit;
  std::string kind;
  std::int64_t num_links = 0;
  std::int64_t num_flows = 0;  // of the victim
  double lost_s = 0;           // summed over those flows
  double longest_s = 0;        // of one flow
  std::string worst_from;      // the link on which most was lost
  std::string worst_to;
  double worst_lost_s = 0;  // there
};

/// The links of a run: by kind, the hottest ones, and who slowed whom. Times are of the whole run.
struct LinkFigures {
  double end_s = 0;
  double bin_s = 0;                // bins start at 0; the last may be cut short by the end
  std::vector<LinkKindUse> kinds;  // from GPUs up
  std::vector<LinkUse> hottest;    // by utilisation
  std::int64_t num_slow_flows = 0;
  double lost_s = 0;                   // summed over them: what they took longer than alone
  std::vector<LinkLossFigure> losses;  // by lost_s
};

}  // namespace isthmus::reports
