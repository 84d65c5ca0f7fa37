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
  backend::MeasureOptions options;
  bool is_known = arguments.size() >= 2;
  for (std::size_t at = 2; at < arguments.size(); ++at) {
    if (arguments[at] == "--quick") {
      options.quick = true;
    } else if (arguments[at] == "--gpu") {
      options.device = backend::DeviceKind::kGpu;
    } else {
      is_known = false;
    }
  }
  if (!is_known)
    throw base::Error("isthmus-rank --measure FILE [--quick] [--gpu]: isthmus calibrate calls it");
  options.environment = backend::ReadRankEnvironment(backend::EnvironmentOfThisProcess());
  if (options.environment.world_size < 2)
    throw base::Error("one rank alone has no messages to measure: isthmus calibrate starts four");
  const std::vector<traces::MeasuredRow> rows = backend::MeasureMachine(options);
  if (options.environment.rank != 0) return 0;
  base::WriteFile(std::string(arguments[1]), traces::ToCsv(rows));
  return 0;
}

}  // namespace isthmus::cli
