#pragma once

namespace isthmus::cli {

/// What programs of this folder end with besides 0 and 1: the user can put it right, the world
/// failed.
inline constexpr int kUserError = 2;
inline constexpr int kWorldFailure = 3;

}  // namespace isthmus::cli
