#pragma once

#include <cstdint>
#include <vector>

/// SimGrid as the judge of our closed forms. Times in seconds, sizes in bytes.
namespace isthmus::oracle {

struct SharedJob {
  double start_s = 0;
  double work_s = 0;  // alone on a core
};

/// When each job is over on a host of `cores` cores.
std::vector<double> EndsOnSharedHost(int cores, const std::vector<SharedJob>& jobs);

struct Flow {
  int from = 0;  // node
  int to = 0;
  double bytes = 0;
};

/// When the last of `flows` is over that all start at once between nodes with one link in and one
/// out, each of `rate` bytes per second. Rates are shared max-min; nothing else costs anything.
double EndOfFlows(int num_nodes, double rate, const std::vector<Flow>& flows);

/// The same for phases of flows, each begun when the one before is over.
double EndOfPhases(int num_nodes, double rate, const std::vector<std::vector<Flow>>& phases);

}  // namespace isthmus::oracle
