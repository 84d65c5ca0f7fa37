#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "profiles/profile.h"

namespace isthmus::sim {

/// Time of one collective among the n GPUs of a node, as measured.
///
///     t(W) = a + W/B + c·(W/1 MB)^g                 form
///     below the first measured point: the form, at most that point's time; between points: a
///     line; above the last: the form, shifted to meet it
///
/// W: bus bytes of nccl-tests; a, c in seconds, B in B/s. Points are there where NCCL changes its
/// protocol (1 to 8 MB), which no smooth form follows: the two together halve the error of sizes
/// that no fit has seen. A group whose NVLink is slower than the machine's that was measured adds
/// W/B·(1/share - 1) with share = its rate over that machine's.
/// Source: `collective.node.<kind>.<n>.*` of the profile, written by
/// scripts/fit/fit_collectives.py. Derivation: docs/models/collectives.md.
struct NodeForm {
  double latency = 0;
  double bandwidth = 0;
  double ramp = 0;
  double ramp_exponent = 0;
  bool in_switch = false;                         ///< the NVSwitch reduces (NVLS)
  std::vector<std::pair<double, double>> points;  ///< {W, seconds}, ascending

  /// Seconds; grows with bus_bytes and falls with share, in (0, 1].
  double Time(double bus_bytes, double share) const;

 private:
  double Form(double bus_bytes) const;
};

/// The forms of one kind (`all_gather` ...) by number of ranks; `bus_factor(n)` is W over the size
/// that points are stated for. Throws base::Error for a malformed or missing parameter.
std::map<int, NodeForm> ReadNodeForms(const profiles::Profile& profile, const std::string& kind,
                                      double (*bus_factor)(int num_ranks));

}  // namespace isthmus::sim
