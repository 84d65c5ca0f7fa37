#pragma once

#include <string>

#include "profiles/profile.h"
#include "scenarios/internal/sources.h"

namespace isthmus::scenarios::internal {

// Reads a profile by name, or by a path, with the files it includes; profiles/README.md has the
// format. `named_by` is where the name is written, at the key `key_path`. Mistakes go to the
// diagnostics of `sources`; the profile then lacks what they are about.
profiles::Profile ReadProfile(Sources& sources, const SearchPaths& search, Diagnostics& diagnostics,
                              const std::string& name, const Origin& named_by,
                              const std::string& key_path);

}  // namespace isthmus::scenarios::internal
