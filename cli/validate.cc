#include "studies/validate.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "cli/build_info.h"
#include "cli/commands.h"
#include "studies/validation_text.h"

namespace isthmus::cli {
namespace {

// Shows how far the rows are, on standard error, once they take longer than two seconds.
class Progress {
 public:
  void Show(std::size_t done, std::size_t total) {
    using std::chrono::milliseconds;
    using std::chrono::steady_clock;
    constexpr milliseconds kQuiet{2000};
    const bool is_terminal = isatty(STDERR_FILENO) == 1;
    const milliseconds pause{is_terminal ? 200 : 10'000};  // a log gets a line now and then
    const auto now = steady_clock::now();
    if (now - begin_ < kQuiet || (now - shown_ < pause && done < total)) return;
    shown_ = now;
    fmt::print(stderr, "{}{} of {} rows{}", is_terminal ? "\r" : "", done, total,
               is_terminal && done < total ? "" : "\n");
    std::fflush(stderr);
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point shown_;
};

}  // namespace

int Validate(const ValidateOptions& options) {
  Progress progress;
  const studies::Validation validation = studies::Validate(
      {.files = {options.files.begin(), options.files.end()},
       .filter = options.filter,
       .sets = options.sets,
       .commit = std::string(BuildCommit()),
       .num_threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 64U)),
       .on_progress = [&](std::size_t done, std::size_t total) { progress.Show(done, total); }});
  if (options.folder) studies::WriteFolder(validation, *options.folder);
  Write(options.output,
        options.output.json ? studies::RenderJson(validation) : studies::RenderText(validation));
  return validation.skipped_in_sets.empty() ? 0 : 1;
}

}  // namespace isthmus::cli
