#include "traces/recorder.h"

namespace isthmus::traces {

void Replay(const Trace& trace, TraceSink& sink) {
  sink.OnHeader(trace.header);
  sink.OnEvents(trace.events);
  sink.OnMemory(trace.counters);
  sink.OnTrailer(trace.trailer);
}

}  // namespace isthmus::traces
