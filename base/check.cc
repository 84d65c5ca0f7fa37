#include "base/check.h"

#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

namespace isthmus::base {
namespace {

// The clock of the simulation that runs on this thread: for messages, nothing is decided by it.
thread_local const SimTime* current_time = nullptr;

}  // namespace

CheckTimeScope::CheckTimeScope(const SimTime& now) : outer_(current_time) { current_time = &now; }

CheckTimeScope::~CheckTimeScope() { current_time = outer_; }

namespace internal {

void FailCheck(const char* file, int line, std::string_view condition, std::string_view text) {
  std::string message = fmt::format("{}:{}: check failed: {}", file, line, condition);
  if (!text.empty()) message += fmt::format("\n  {}", text);
  if (current_time != nullptr) {
    message += fmt::format("\n  at simulated time {} ps", current_time->ps());
  }
  message += "\nThis is a bug in Isthmus, not in your input.\n";
  std::fputs(message.c_str(), stderr);
  std::fflush(stderr);
  std::abort();
}

}  // namespace internal
}  // namespace isthmus::base
