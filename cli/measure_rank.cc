#include "cli/measure_rank.h"

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "backend/launch/rank_environment.h"
#include "backend/torch/measure/measure.h"
#include "base/error.h"
#include "base/file_io.h"
#include "traces/measured_row.h"

namespace isthmus::cli {

std::optional<int> MeasureIfAsked(int argc, const char* const* argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  if (arguments.empty() || arguments[0] != "--measure") return std::nullopt;
  const bool is_quick = arguments.size() == 3 && arguments[2] == "--quick";
  if (arguments.size() != 2 && !is_quick)
    throw base::Error("isthmus-rank --measure FILE [--quick]: isthmus calibrate calls it");
  const backend::RankEnvironment environment =
      backend::ReadRankEnvironment(backend::EnvironmentOfThisProcess());
  std::vector<traces::MeasuredRow> rows =
      backend::MeasureMachine({.environment = environment, .quick = is_quick});
  if (environment.rank != 0) return 0;
  rows.push_back({.table = "versions", .point = backend::VersionsMeasured()});
  base::WriteFile(std::string(arguments[1]), traces::ToCsv(rows));
  return 0;
}

}  // namespace isthmus::cli
