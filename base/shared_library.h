#pragma once

#include <string>

namespace isthmus::base {

/// Loads a shared library of ours, from the folder of this program or else from where the loader
/// looks, and finds a function in it. It stays loaded: what it made may outlive any handle.
///
/// Throws IoError, with `hint`, if the library or the function isn't there. `is_global`: its
/// symbols serve libraries loaded later, and it finds those that are there already.
void* LoadFunction(const std::string& library, const std::string& function, const std::string& hint,
                   bool is_global = false);

}  // namespace isthmus::base
