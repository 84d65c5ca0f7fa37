#pragma once

#include <string>

#include "reports/link_figures.h"
#include "reports/text.h"

namespace isthmus::reports {

/// The links' part of the terminal report: kinds over time, traffic by what it is for, the hottest
/// links, who slows whom. Ends with a line break.
std::string RenderLinks(const LinkFigures& links, const TextOptions& options);

/// What the job itself lost to other jobs, for the report of a difference.
std::string RenderLossesToOthers(const LinkFigures& links, const TextOptions& options);

}  // namespace isthmus::reports
