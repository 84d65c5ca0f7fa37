#include "base/error.h"
#include "cli/commands.h"

namespace isthmus::cli {

int Validate(const ValidateOptions&) { throw base::Error("validate is known but not built yet"); }

}  // namespace isthmus::cli
