#pragma once

#include <string_view>

namespace isthmus::cli {

/// The commit `isthmus` was built from, as `git describe --always --dirty` names it; "unknown" when
/// it was built outside a checkout. Stated by traces and reports.
///
/// Defined in the program only, not in the library, so that a commit relinks one program.
std::string_view BuildCommit();

/// The version of the project, "0.1.0".
std::string_view BuildVersion();

}  // namespace isthmus::cli
