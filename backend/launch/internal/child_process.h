#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backend/launch/rank_environment.h"

namespace isthmus::backend::internal {

// A file descriptor that is closed when this ends. Not copyable.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { Close(); }
  Descriptor(Descriptor&& other) noexcept : number_(other.number_) { other.number_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  void Close();

 private:
  int number_;
};

struct Command {
  std::string program;  // a path
  std::vector<std::string> arguments;
  Variables environment;  // the whole of it
};

// A running process: leader of a process group of its own, standard input empty, output and error
// on pipes that don't block. It gets SIGKILL when the thread that made it ends.
//
// Whatever is left of its group is killed when the process has ended, or this object is destroyed.
class ChildProcess {
 public:
  // Throws base::IoError if the program can't be started.
  explicit ChildProcess(const Command& command);
  ~ChildProcess();
  ChildProcess(ChildProcess&&) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;

  // Readable when it has ended; not open on a system without pidfd_open().
  const Descriptor& end() const { return end_; }
  Descriptor& output() { return output_; }
  Descriptor& error() { return error_; }

  // How it ended, as waitpid's status; nothing while it runs. May be asked until it has answered.
  std::optional<int> TryWait();
  // Sends a signal to the whole group. Needs a process that has not been waited for.
  void Signal(int signal) const;

 private:
  void Start(const Command& command);

  int id_ = 0;  // of process and group; 0 once it has been waited for
  Descriptor end_;
  Descriptor output_;
  Descriptor error_;
};

}  // namespace isthmus::backend::internal
