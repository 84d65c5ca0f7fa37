#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "traces/trace.h"

namespace isthmus::cli {

/// Says on standard error what is being worked on, once it takes longer than two seconds, and again
/// every two seconds. Counts the events of a run as a sink. Quick work prints nothing.
///
/// Has a thread of its own while it lives; everything may be called from the thread that made it.
class Progress final : public traces::TraceSink {
 public:
  explicit Progress(std::string work);
  ~Progress() override;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// What comes next: "planning", "simulating".
  void Begin(const std::string& work);

  void OnHeader(const traces::Header&) override {}
  void OnEvents(std::span<const traces::Event> events) override { num_events_ += events.size(); }
  void OnMemory(std::span<const traces::MemoryCounter>) override {}
  void OnTrailer(const traces::Trailer&) override {}

 private:
  void Run();

  std::atomic<std::uint64_t> num_events_ = 0;
  std::mutex mutex_;
  std::condition_variable woken_;
  std::string work_;   // guarded by mutex_
  bool done_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace isthmus::cli
