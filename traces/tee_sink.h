#pragma once

#include <span>
#include <utility>
#include <vector>

#include "traces/trace.h"

namespace isthmus::traces {

/// Passes a run on to several sinks, in the order given: a report and a trace file of one run.
///
/// An exception of a sink goes to the producer, and the sinks after it miss that portion.
/// Lifetime: the sinks must outlive the tee.
class TeeSink final : public TraceSink {
 public:
  explicit TeeSink(std::vector<TraceSink*> sinks) : sinks_(std::move(sinks)) {}

  void OnHeader(const Header& header) override {
    for (TraceSink* sink : sinks_) sink->OnHeader(header);
  }
  void OnEvents(std::span<const Event> events) override {
    for (TraceSink* sink : sinks_) sink->OnEvents(events);
  }
  void OnMemory(std::span<const MemoryCounter> counters) override {
    for (TraceSink* sink : sinks_) sink->OnMemory(counters);
  }
  void OnTrailer(const Trailer& trailer) override {
    for (TraceSink* sink : sinks_) sink->OnTrailer(trailer);
  }

 private:
  std::vector<TraceSink*> sinks_;  // never null
};

}  // namespace isthmus::traces
