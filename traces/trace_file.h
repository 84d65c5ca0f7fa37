#pragma once

#include <filesystem>
#include <memory>

#include "traces/recorder.h"
#include "traces/trace.h"

/// Traces in files.
namespace isthmus::traces {

/// A sink that writes a run to `path` in the form that its ending names:
///
/// - `.isthmus`: our own (proto/trace.proto), whole and the only one that is read back; at most 32
///   bytes an event;
/// - `.pftrace`: Perfetto's, for ui.perfetto.dev;
/// - `.json`: Chrome's trace events, for chrome://tracing and tools that read them;
/// - `.jsonl`: header, events, memory and trailer as JSON, one object a line;
/// - `.csv`: the table of events, one a line.
///
/// The file appears, whole, when the trailer arrived; without one (an exception on the way) there
/// is none, and an older one stays. Throws base::Error for another ending and base::IoError when
/// something can't be written, at any call.
///
/// Memory: the header, and one or two blocks of events; `.pftrace` and `.json` keep all events,
/// packed, until the trailer (some 10 bytes an event).
std::unique_ptr<TraceSink> OpenTraceFile(const std::filesystem::path& path);

/// Gives an `.isthmus` file to a sink, in portions as they were stored.
///
/// Every index in what the sink receives is valid (events name classes and ops that exist, and so
/// on) and no event ends before its start. Throws base::Error naming the file and the offset when
/// it can't be read, is no trace, is damaged or cut off; the sink then has had a part of the run,
/// without a trailer.
void ReadTraceFile(const std::filesystem::path& path, TraceSink& sink);

/// The whole file in memory.
Trace LoadTraceFile(const std::filesystem::path& path);

}  // namespace isthmus::traces
