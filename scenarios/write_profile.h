#pragma once

#include <string>

#include "profiles/profile.h"

namespace isthmus::scenarios {

/// What the head of a profile's file says beside its name and date; empty ones are left out.
struct ProfileHead {
  std::string command;   ///< what made the file
  std::string machine;   ///< "AMD EPYC, 2 cores, 7.8 GiB"
  std::string versions;  ///< of the libraries that did the work: "torch 2.11.0"
  std::string commit;    ///< of isthmus
};

/// `profile` as a file (profiles/README.md has the form). Reading the text gives the same
/// parameters, to the last digit.
std::string WriteProfile(const profiles::Profile& profile, const ProfileHead& head);

}  // namespace isthmus::scenarios
