#include "backend/launch/internal/interrupts.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/error.h"

namespace isthmus::backend::internal {

Interrupts::Interrupts() {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    // What nohup, or a shell for its background, had ignored stays so.
    struct sigaction current {};
    ::sigaction(signal, nullptr, &current);
    if (current.sa_handler != SIG_IGN) sigaddset(&taken, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &taken, &before_);
  descriptor_ = Descriptor(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor_.is_open()) {
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    throw base::IoError("watch", "signals", errno);
  }
}

Interrupts::~Interrupts() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

std::optional<int> Interrupts::Take() {
  signalfd_siginfo info{};
  if (::read(descriptor_.number(), &info, sizeof(info)) != sizeof(info)) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace isthmus::backend::internal
