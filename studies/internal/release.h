#pragma once

#include <string>

#include "plan/model/framework.h"
#include "studies/runs_csv.h"

// Which software a row was run with.
namespace isthmus::studies::internal {

struct RowRelease {
  const plan::FrameworkRelease* framework = nullptr;  // never null
  // What the row says, "NeMo 24.11" or "Megatron-LM"; rows are grouped by it.
  std::string name;
  bool is_stated = false;  // the framework could be told from the row
};

// From `framework`, `framework_version` and `source`, where vendors' recipes, containers and
// submissions name their release. Year and month decide, not the row.
RowRelease ReleaseOf(const RunsRow& row);

}  // namespace isthmus::studies::internal
