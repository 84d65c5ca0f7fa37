#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "backend/launch/internal/child_process.h"

namespace isthmus::backend::internal {

// Lines off a pipe that doesn't block.
//
// Lines longer than 64 KiB come in pieces. Bytes that no line break ends are a line at the end of
// the pipe.
class LineReader {
 public:
  using OnLine = std::function<void(std::string_view)>;

  // `pipe` must outlive this; it is closed at its end.
  explicit LineReader(Descriptor& pipe) : pipe_(pipe) {}

  // Takes up to 64 KiB of what is there; a rank that floods can't keep others from being read.
  void Read(const OnLine& on_line);
  // Takes all that is there and closes the pipe.
  void Drain(const OnLine& on_line);

 private:
  // False if nothing is there now.
  bool ReadSome(const OnLine& on_line);
  void Take(std::string_view bytes, const OnLine& on_line);
  void Finish(const OnLine& on_line);

  Descriptor& pipe_;
  std::string begun_;  // of a line whose end has not come
};

}  // namespace isthmus::backend::internal
