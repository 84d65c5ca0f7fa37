#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "reports/figures.h"
#include "reports/text.h"

namespace isthmus::reports {

/// How the jobs beside a run fared, for the terminal: a title and a row each; nothing if there are
/// none.
std::string RenderOtherJobs(const std::vector<OtherJobFigure>& jobs, const TextOptions& options);

nlohmann::ordered_json OtherJobsJson(const std::vector<OtherJobFigure>& jobs);

}  // namespace isthmus::reports
