#include "studies/what_if.h"

#include <utility>

#include "cli/build_info.h"
#include "cli/commands.h"
#include "cli/network_choice.h"
#include "cli/output.h"
#include "cli/progress.h"

namespace isthmus::cli {

int WhatIf(const WhatIfOptions& options) {
  const sim::Network network = ParseNetwork(options.network);
  CheckOutput({options.scenario}, options.output);
  Progress progress("simulating both scenarios");
  studies::WhatIfOptions wanted{.scenario = options.scenario,
                                .overrides = options.overrides,
                                .changes = options.changes,
                                .network = network,
                                .commit = std::string(BuildCommit())};
  if (options.output.verbose) wanted.max_other = 0;
  const reports::StepDifference difference = studies::WhatIf(wanted);
  WriteDifference(options.output, difference);
  const auto& memory = difference.changed.memory;
  return memory.empty() || memory.front().fits() ? 0 : 1;
}

}  // namespace isthmus::cli
