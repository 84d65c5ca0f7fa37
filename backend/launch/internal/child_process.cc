#include "backend/launch/internal/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace isthmus::backend::internal {
namespace {

struct Pipe {
  Descriptor read;
  Descriptor write;
};

Pipe MakePipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw base::IoError("make", "a pipe", errno);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// Text that execve() takes, in place: made before fork(), after which nothing may allocate.
class TextArray {
 public:
  explicit TextArray(std::vector<std::string> texts) : texts_(std::move(texts)) {
    for (std::string& text : texts_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
  }
  char* const* pointers() const { return pointers_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

TextArray ArgumentsOf(const Command& command) {
  std::vector<std::string> texts = {command.program};
  texts.insert(texts.end(), command.arguments.begin(), command.arguments.end());
  return TextArray(std::move(texts));
}

TextArray EnvironmentOf(const Command& command) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : command.environment)
    texts.push_back(fmt::format("{}={}", name, value));
  return TextArray(std::move(texts));
}

struct ChildSetup {
  const char* program;
  char* const* arguments;
  char* const* environment;
  int parent;
  int input;
  int output;
  int error;
  int failure;  // where errno goes if the program can't be started
};

// What the child does between fork() and its program: system calls only.
[[noreturn]] void BecomeProgram(const ChildSetup& setup) {
  ::setpgid(0, 0);
  // The parent may have died before the request was made: then nobody will ask for its death.
  const bool has_parent = ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::getppid() == setup.parent;
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  if (has_parent && ::dup2(setup.input, STDIN_FILENO) >= 0 &&
      ::dup2(setup.output, STDOUT_FILENO) >= 0 && ::dup2(setup.error, STDERR_FILENO) >= 0) {
    ::execve(setup.program, setup.arguments, setup.environment);
  }
  const int reason = errno;
  static_cast<void>(!::write(setup.failure, &reason, sizeof(reason)));
  // Nothing of the parent's may run here, its exit handlers least of all.
  for (;;) ::kill(::getpid(), SIGKILL);
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this == &other) return *this;
  Close();
  number_ = std::exchange(other.number_, -1);
  return *this;
}

void Descriptor::Close() {
  if (number_ >= 0) ::close(number_);
  number_ = -1;
}

ChildProcess::ChildProcess(const Command& command) { Start(command); }

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : id_(std::exchange(other.id_, 0)),
      end_(std::move(other.end_)),
      output_(std::move(other.output_)),
      error_(std::move(other.error_)) {}

ChildProcess::~ChildProcess() {
  if (id_ == 0) return;
  Signal(SIGKILL);
  ::waitpid(id_, nullptr, 0);
}

void ChildProcess::Start(const Command& command) {
  Pipe output = MakePipe();
  Pipe error = MakePipe();
  Pipe failure = MakePipe();
  const Descriptor input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const TextArray arguments = ArgumentsOf(command);
  const TextArray environment = EnvironmentOf(command);
  const ChildSetup setup = {command.program.c_str(), arguments.pointers(),
                            environment.pointers(),  ::getpid(),
                            input.number(),          output.write.number(),
                            error.write.number(),    failure.write.number()};
  const int id = ::fork();
  if (id < 0) throw base::IoError("start", command.program, errno);
  if (id == 0) BecomeProgram(setup);
  id_ = id;
  ::setpgid(id, id);  // in both processes, so that neither has to wait for the other

  failure.write.Close();
  int reason = 0;
  // Ends without a byte when the program runs: its end of the pipe closed by itself.
  if (::read(failure.read.number(), &reason, sizeof(reason)) == sizeof(reason)) {
    ::waitpid(std::exchange(id_, 0), nullptr, 0);
    throw base::IoError("start", command.program, reason);
  }
  // The C library has no wrapper that C++ can link.
  end_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, id, 0)));
  output_ = std::move(output.read);
  error_ = std::move(error.read);
  for (const int descriptor : {output_.number(), error_.number()}) {
    ::fcntl(descriptor, F_SETFL, O_NONBLOCK);
  }
}

std::optional<int> ChildProcess::TryWait() {
  siginfo_t info{};
  const auto id = static_cast<id_t>(id_);
  if (::waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
    return std::nullopt;
  }
  // Until it is waited for, its number can't be another group's.
  Signal(SIGKILL);
  int status = 0;
  ::waitpid(std::exchange(id_, 0), &status, 0);
  end_.Close();
  return status;
}

void ChildProcess::Signal(int signal) const { ::kill(-id_, signal); }

}  // namespace isthmus::backend::internal
