#include "traces/internal/chrome_writer.h"

#include <iterator>

#include <fmt/compile.h>
#include <fmt/format.h>

#include "traces/internal/json_text.h"

namespace isthmus::traces::internal {
namespace {

std::string Microseconds(std::int64_t time_ps) {
  const bool is_negative = time_ps < 0;
  const auto magnitude =
      is_negative ? ~static_cast<std::uint64_t>(time_ps) + 1 : static_cast<std::uint64_t>(time_ps);
  return fmt::format(FMT_COMPILE("{}{}.{:06}"), is_negative ? "-" : "", magnitude / 1'000'000,
                     magnitude % 1'000'000);
}

}  // namespace

const std::string& ChromeRenderer::Quoted(std::string_view text) {
  const auto found = quoted_.find(text);
  if (found != quoted_.end()) return found->second;
  return quoted_.emplace(text, JsonText(text)).first->second;
}

void ChromeRenderer::WriteEvent(std::string_view event) {
  file_.Write(is_first_ ? "\n" : ",\n");
  is_first_ = false;
  file_.Write(event);
}

void ChromeRenderer::WriteMetadata(const char* what, ProcessId process, std::uint32_t track,
                                   std::string_view argument) {
  WriteEvent(fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{{}}}}})", what,
                         process, track, argument));
}

void ChromeRenderer::OnRun(const Header& header) {
  file_.Write(fmt::format(
      R"({{"displayTimeUnit":"ns","otherData":{{"kind":"{}","scenario":{},"scenario_hash":{},)"
      R"("profile":{},"commit":{},"machine":{},"seed":{},"num_ranks":{}}},"traceEvents":[)",
      ToText(header.kind), JsonText(header.scenario_name), JsonText(header.scenario_hash),
      JsonText(header.profile_name), JsonText(header.commit), JsonText(header.machine), header.seed,
      header.num_ranks));
  WriteMetadata("process_name", 0, 0, R"("name":"run")");
  WriteMetadata("process_sort_index", 0, 0, R"("sort_index":0)");
}

void ChromeRenderer::OnProcess(const TimelineProcess& process) {
  WriteMetadata("process_name", process.id, 0, fmt::format(R"("name":{})", JsonText(process.name)));
  WriteMetadata("process_sort_index", process.id, 0, fmt::format(R"("sort_index":{})", process.id));
}

void ChromeRenderer::OnTrack(const TimelineTrack& track) {
  WriteMetadata("thread_name", track.process, track.id,
                fmt::format(R"("name":{})", JsonText(track.name)));
  WriteMetadata("thread_sort_index", track.process, track.id,
                fmt::format(R"("sort_index":{})", track.order));
}

void ChromeRenderer::OnSliceBegin(const TimelineSlice& slice) {
  std::string arguments;
  for (const Annotation& annotation : slice.annotations) {
    fmt::format_to(std::back_inserter(arguments), FMT_COMPILE(R"({}"{}":)"),
                   arguments.empty() ? "" : ",", annotation.name);
    if (const auto* number = std::get_if<std::int64_t>(&annotation.value)) {
      arguments += std::to_string(*number);
    } else if (const auto* real = std::get_if<double>(&annotation.value)) {
      arguments += JsonNumber(*real);
    } else {
      arguments += Quoted(std::get<std::string_view>(annotation.value));
    }
  }
  WriteEvent(fmt::format(
      FMT_COMPILE(
          R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})"),
      Quoted(slice.name), slice.category, slice.process, slice.track, Microseconds(slice.start_ps),
      Microseconds(slice.end_ps - slice.start_ps), arguments));
  for (const std::uint64_t flow : slice.departures) WriteFlow('s', flow, slice, slice.start_ps);
  if (slice.arrival != 0) WriteFlow('f', slice.arrival, slice, slice.arrival_ps);
}

void ChromeRenderer::WriteFlow(char phase, std::uint64_t flow, const TimelineSlice& slice,
                               std::int64_t time_ps) {
  WriteEvent(fmt::format(
      R"({{"ph":"{}",{}"name":"message","cat":"message","id":{},"pid":{},"tid":{},"ts":{}}})",
      phase, phase == 'f' ? R"("bp":"e",)" : "", flow, slice.process, slice.track,
      Microseconds(time_ps)));
}

void ChromeRenderer::OnSliceEnd(std::uint32_t /*track*/, std::int64_t /*end_ps*/,
                                std::uint64_t /*arrival*/) {
  // A slice holds its duration.
}

void ChromeRenderer::OnMemory(ProcessId process, std::int64_t time_ps, std::int64_t bytes) {
  WriteEvent(
      fmt::format(R"({{"ph":"C","name":"memory","pid":{},"tid":0,"ts":{},"args":{{"bytes":{}}}}})",
                  process, Microseconds(time_ps), bytes));
}

void ChromeRenderer::OnFinish() {
  file_.Write("\n]}\n");
  file_.Commit();
}

}  // namespace isthmus::traces::internal
