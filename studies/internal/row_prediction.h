#pragma once

#include "studies/validate.h"

namespace isthmus::studies::internal {

// Simulates a row's scenario and, with options.with_alternatives, its strict variant, what its
// open cells allow as well, and the band around it. A scenario that can't be is the row's own
// fault: `why` says so. Throws base::IoError.
RowResult PredictRow(RunCase run, const ValidateOptions& options);

}  // namespace isthmus::studies::internal
