#pragma once

#include <csignal>
#include <optional>

#include "backend/launch/internal/child_process.h"

namespace isthmus::backend::internal {

// While it lives, SIGINT, SIGTERM and SIGHUP don't end this thread's process but wait to be taken.
//
// One that was ignored before stays so: the user, by nohup say, wants the process to go on.
// A signal that other threads don't block may be given to them and end the process all the same.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Readable when a signal has come.
  int descriptor() const { return descriptor_.number(); }
  // The signal that came first of those not taken yet.
  std::optional<int> Take();

 private:
  sigset_t before_{};
  Descriptor descriptor_;
};

}  // namespace isthmus::backend::internal
