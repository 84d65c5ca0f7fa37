#include <memory>

#include "cli/commands.h"
#include "reports/analysis.h"
#include "reports/json.h"
#include "reports/text.h"
#include "traces/tee_sink.h"
#include "traces/trace_file.h"

namespace isthmus::cli {

int Report(const ReportOptions& options) {
  reports::Analysis analysis;
  std::vector<std::unique_ptr<traces::TraceSink>> files;
  std::vector<traces::TraceSink*> sinks{&analysis};
  for (const std::string& path : options.export_to) {
    files.push_back(traces::OpenTraceFile(path));
    sinks.push_back(files.back().get());
  }
  traces::TeeSink sink(sinks);
  traces::ReadTraceFile(options.trace, sink);
  const reports::Figures& figures = analysis.figures();
  if (options.output.json) {
    Write(options.output, reports::RenderJson(figures));
  } else {
    Write(options.output, reports::RenderText(figures, {.color = WantsColor(options.output),
                                                        .width = TerminalWidth(),
                                                        .verbose = options.output.verbose}));
  }
  for (const reports::MemoryFigure& memory : figures.memory) {
    if (!memory.fits()) return 1;
  }
  return 0;
}

}  // namespace isthmus::cli
