#pragma once

#include <stdexcept>

namespace isthmus::cli {

/// What programs of this folder end with besides 0 and 1: the user can put it right, the world
/// failed.
inline constexpr int kUserError = 2;
inline constexpr int kWorldFailure = 3;

/// A signal came from the user while a verb waited for ranks, which have ended. When everything is
/// unwound (files in the making are gone) the program ends by the same signal, so that whoever
/// waits for it sees that.
class Interrupted : public std::runtime_error {
 public:
  Interrupted(const char* text, int signal) : std::runtime_error(text), signal_(signal) {}
  int signal() const { return signal_; }

 private:
  int signal_;
};

}  // namespace isthmus::cli
