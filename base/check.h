#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "base/sim_time.h"

/// Checks for our own mistakes. Never for what a user may write: throw base::Error there.
///
/// ISTHMUS_CHECK(cond) or ISTHMUS_CHECK(cond, "text {}", value): always on; when `cond` is false
/// prints the place, the condition, the text and the simulated time, and aborts. The values are
/// only looked at on failure.
#define ISTHMUS_CHECK(cond, ...)                                                               \
  do {                                                                                         \
    if (!(cond)) [[unlikely]] {                                                                \
      ::isthmus::base::internal::FailCheck(__FILE__, __LINE__, #cond,                          \
                                           ::isthmus::base::internal::CheckText(__VA_ARGS__)); \
    }                                                                                          \
  } while (false)

/// The same for hot loops: only in builds without NDEBUG; elsewhere compiled, never evaluated.
#ifdef NDEBUG
#define ISTHMUS_DCHECK(cond, ...)                              \
  do {                                                         \
    if (false) ISTHMUS_CHECK(cond __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)
#else
#define ISTHMUS_DCHECK(cond, ...) ISTHMUS_CHECK(cond __VA_OPT__(, ) __VA_ARGS__)
#endif

namespace isthmus::base {

/// While it lives, failing checks of this thread also print the time `now` holds.
///
/// Lifetime: `now` must outlive it. Scopes nest; the innermost counts. Belongs to one thread.
class CheckTimeScope {
 public:
  explicit CheckTimeScope(const SimTime& now);
  ~CheckTimeScope();
  CheckTimeScope(const CheckTimeScope&) = delete;
  CheckTimeScope& operator=(const CheckTimeScope&) = delete;

 private:
  const SimTime* outer_;
};

namespace internal {

inline std::string CheckText() { return {}; }

template <typename... Args>
std::string CheckText(fmt::format_string<Args...> format, Args&&... args) {
  return fmt::format(format, std::forward<Args>(args)...);
}

[[noreturn]] void FailCheck(const char* file, int line, std::string_view condition,
                            std::string_view text);

}  // namespace internal
}  // namespace isthmus::base
