#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "reports/alignment.h"
#include "reports/comparison.h"
#include "traces/side_by_side.h"
#include "traces/trace_file.h"

namespace isthmus::cli {
namespace {

// Throws what is wrong with either file, so that two wrong names are put right at once.
std::pair<traces::Trace, traces::Trace> LoadBoth(const CompareOptions& options) {
  std::vector<std::string> mistakes;
  const auto load = [&mistakes](const std::string& path) {
    try {
      return traces::LoadTraceFile(path);
    } catch (const base::Error& error) {
      mistakes.push_back(fmt::format("isthmus: error: {}", error.what()));
      return traces::Trace{};
    }
  };
  traces::Trace predicted = load(options.predicted);
  traces::Trace measured = load(options.measured);
  if (!mistakes.empty()) throw base::Error(fmt::format("{}", fmt::join(mistakes, "\n")));
  return {std::move(predicted), std::move(measured)};
}

}  // namespace

int Compare(const CompareOptions& options) {
  std::vector<std::string> outputs;
  if (options.output.file) outputs.push_back(*options.output.file);
  if (options.perfetto) outputs.push_back(*options.perfetto);
  CheckFiles({options.predicted, options.measured}, outputs);
  auto [predicted, measured] = LoadBoth(options);
  const reports::AlignedTraces traces =
      reports::AlignTraces(std::move(predicted), std::move(measured));
  if (options.perfetto) {
    traces::WriteSideBySide(traces.predicted, traces.measured, *options.perfetto);
  }
  WriteComparison(options.output,
                  reports::Compare(traces, {.num_worst_ops = options.num_worst_ops}));
  return 0;
}

}  // namespace isthmus::cli
