#include "cli/progress.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "cli/output.h"

namespace isthmus::cli {
namespace {

constexpr std::chrono::seconds kPeriod{2};

}  // namespace

Progress::Progress(std::string work) : work_(std::move(work)), thread_([this] { Run(); }) {}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  woken_.notify_all();
  thread_.join();
}

void Progress::Begin(const std::string& work) {
  const std::lock_guard lock(mutex_);
  work_ = work;
}

void Progress::Run() {
  std::unique_lock lock(mutex_);
  std::chrono::seconds elapsed{0};
  while (!woken_.wait_for(lock, kPeriod, [this] { return done_; })) {
    elapsed += kPeriod;
    const auto count = static_cast<std::int64_t>(num_events_.load());
    const std::string events =
        count > 0 ? fmt::format(", {} events", base::FormatCount(count)) : "";
    Tell(fmt::format("isthmus: {} ({} s{})\n", work_, elapsed.count(), events));
  }
}

}  // namespace isthmus::cli
