#pragma once

#include <string>

#include "studies/validate.h"

namespace isthmus::studies {

/// Measured against predicted step time as an SVG picture: both axes logarithmic, the diagonal, the
/// lines 10 % above and below it, a colour for each set (without sets: for each table) with its
/// rows and median error in the legend. Equal inputs give equal bytes. Empty when no row has both
/// times.
std::string RenderScatterSvg(const Validation& validation);

}  // namespace isthmus::studies
