#include "cli/commands.h"
#include "cli/output.h"
#include "reports/alignment.h"
#include "reports/comparison.h"
#include "traces/side_by_side.h"
#include "traces/trace_file.h"

namespace isthmus::cli {

int Compare(const CompareOptions& options) {
  std::vector<std::string> outputs;
  if (options.output.file) outputs.push_back(*options.output.file);
  if (options.perfetto) outputs.push_back(*options.perfetto);
  CheckFiles({options.predicted, options.measured}, outputs);
  const reports::AlignedTraces traces = reports::AlignTraces(
      traces::LoadTraceFile(options.predicted), traces::LoadTraceFile(options.measured));
  if (options.perfetto) {
    traces::WriteSideBySide(traces.predicted, traces.measured, *options.perfetto);
  }
  WriteComparison(options.output,
                  reports::Compare(traces, {.num_worst_ops = options.num_worst_ops}));
  return 0;
}

}  // namespace isthmus::cli
