#include "studies/validate.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "cli/build_info.h"
#include "cli/commands.h"
#include "cli/machine.h"
#include "cli/network_choice.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "studies/explain.h"
#include "studies/validation_text.h"

namespace isthmus::cli {
namespace {

constexpr int kMostThreads = 64;

}  // namespace

int Validate(const ValidateOptions& options) {
  if (options.explain && options.folder) {
    throw base::Error(
        "--out with --explain: a row taken apart goes into no folder; leave out --out, or store "
        "the "
        "text with -o FILE");
  }
  CheckOutput(options.files, options.output);
  Progress progress("reading runs");
  const sim::Network network = ParseNetwork(options.network);
  const int num_threads = std::min(NumCores(), kMostThreads);
  const studies::ValidateOptions wanted{
      .files = {options.files.begin(), options.files.end()},
      .filter = options.filter,
      .sets = options.sets,
      .network = network,
      .commit = std::string(BuildCommit()),
      .num_threads = network == sim::Network::kFlow ? 1 : num_threads,
      .on_progress = [&](std::size_t done, std::size_t total) {
        progress.Begin(fmt::format("{} of {} rows", done, total));
      }};
  if (options.explain) {
    const studies::Explanation explanation = studies::ExplainRow(wanted, *options.explain);
    Write(options.output, options.output.json ? studies::RenderJson(explanation)
                                              : studies::RenderText(explanation));
    return 0;
  }
  const studies::Validation validation = studies::Validate(wanted);
  if (options.folder) studies::WriteFolder(validation, *options.folder);
  Write(options.output,
        options.output.json ? studies::RenderJson(validation) : studies::RenderText(validation));
  return validation.skipped_in_sets.empty() ? 0 : 1;
}

}  // namespace isthmus::cli
