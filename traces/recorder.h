#pragma once

#include <span>
#include <utility>
#include <vector>

#include "traces/trace.h"

namespace isthmus::traces {

/// A whole run in memory, as a sink received it: what reports, studies and tests look at.
struct Trace {
  Header header;
  std::vector<Event> events;            // in the order received
  std::vector<MemoryCounter> counters;  // in the order received
  Trailer trailer;

  bool operator==(const Trace&) const = default;
};

/// Keeps everything it is given.
///
/// Memory: 40 bytes an event, 24 a memory counter, plus the vectors' slack.
/// Not thread-safe.
class Recorder final : public TraceSink {
 public:
  void OnHeader(const Header& header) override { trace_.header = header; }
  void OnEvents(std::span<const Event> events) override {
    trace_.events.insert(trace_.events.end(), events.begin(), events.end());
  }
  void OnMemory(std::span<const MemoryCounter> counters) override {
    trace_.counters.insert(trace_.counters.end(), counters.begin(), counters.end());
  }
  void OnTrailer(const Trailer& trailer) override {
    trace_.trailer = trailer;
    complete_ = true;
  }

  /// The references are good as long as the recorder is.
  const Trace& trace() const { return trace_; }
  const Header& header() const { return trace_.header; }
  const std::vector<Event>& events() const { return trace_.events; }
  const std::vector<MemoryCounter>& counters() const { return trace_.counters; }
  const Trailer& trailer() const { return trace_.trailer; }
  /// Whether the trailer arrived.
  bool complete() const { return complete_; }

  /// Hands the trace out and leaves the recorder empty.
  Trace Take() {
    complete_ = false;
    return std::exchange(trace_, Trace{});
  }

 private:
  Trace trace_;
  bool complete_ = false;
};

/// Gives a recorded trace to another sink: header, events, counters, trailer.
void Replay(const Trace& trace, TraceSink& sink);

}  // namespace isthmus::traces
