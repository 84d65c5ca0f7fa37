#include "traces/trace_file.h"

#include <array>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "traces/internal/chrome_writer.h"
#include "traces/internal/csv_writer.h"
#include "traces/internal/json_lines_writer.h"
#include "traces/internal/perfetto_writer.h"
#include "traces/internal/store_reader.h"
#include "traces/internal/store_writer.h"

namespace isthmus::traces {
namespace {

template <typename Writer>
std::unique_ptr<TraceSink> Open(const std::filesystem::path& path) {
  return std::make_unique<Writer>(path);
}

struct Form {
  const char* ending;
  std::unique_ptr<TraceSink> (*open)(const std::filesystem::path&);
};

constexpr std::array<Form, 5> kForms = {{{".isthmus", &Open<internal::StoreWriter>},
                                         {".pftrace", &Open<internal::PerfettoWriter>},
                                         {".json", &Open<internal::ChromeWriter>},
                                         {".jsonl", &Open<internal::JsonLinesWriter>},
                                         {".csv", &Open<internal::CsvWriter>}}};

}  // namespace

std::unique_ptr<TraceSink> OpenTraceFile(const std::filesystem::path& path) {
  std::vector<std::string> endings;
  for (const Form& form : kForms) {
    if (path.extension() == form.ending) return form.open(path);
    endings.emplace_back(form.ending);
  }
  const std::string ending = path.extension().string();
  throw base::Error(fmt::format(
      "{}: {} no kind of trace file\n  hint: use one of {}", path.string(),
      ending.empty() ? "no ending names" : "\"" + ending + "\" is", fmt::join(endings, ", ")));
}

void ReadTraceFile(const std::filesystem::path& path, TraceSink& sink) {
  internal::StoreReader(path, sink).Read();
}

Trace LoadTraceFile(const std::filesystem::path& path) {
  Recorder recorder;
  ReadTraceFile(path, recorder);
  return recorder.Take();
}

}  // namespace isthmus::traces
