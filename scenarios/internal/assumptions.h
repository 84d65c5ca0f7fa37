#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.h"
#include "scenarios/spec.h"

namespace isthmus::scenarios::internal {

// What was assumed: by the file's author, by the models' files, by the cluster's.
std::vector<std::string> AssumptionsOf(const ScenarioSpec& spec);

// What a report has to say about a job beside the one that it is about.
std::string AssumptionOf(const OtherJob& job);

}  // namespace isthmus::scenarios::internal
