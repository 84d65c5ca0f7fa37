#include "base/error.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "traces/trace_file.h"

namespace isthmus::cli {

int Report(const ReportOptions& options) {
  if (options.links) {
    throw base::Error(
        "--links: a trace doesn't say what crossed which link\n  hint: isthmus simulate SCENARIO "
        "--network flow --links");
  }
  std::vector<std::string> outputs = options.export_to;
  if (options.output.file) outputs.push_back(*options.output.file);
  CheckFiles({options.trace}, outputs);
  TraceOutputs traces(options.export_to, {});
  traces::ReadTraceFile(options.trace, traces.sink());
  const reports::Figures& figures = traces.analysis().figures();
  WriteFigures(options.output, figures);
  for (const reports::MemoryFigure& memory : figures.memory) {
    if (!memory.fits()) return 1;
  }
  return 0;
}

}  // namespace isthmus::cli
