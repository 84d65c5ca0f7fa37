#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "studies/validate.h"

namespace isthmus::studies {

/// Sets of rows by name, in the order of the file.
struct RowSets {
  std::vector<std::pair<std::string, std::vector<std::string>>> sets;  // name, row ids
};

/// A CSV with columns set and row_id. Throws base::Error with file and line.
RowSets ReadSets(const std::filesystem::path& path);

/// Fills summary, groups, skipped_by_reason, not_loaded and skipped_in_sets from the rows. `sets`
/// may be null.
void GroupRows(const RowSets* sets, Validation& validation);

/// Fills gains and gain_summaries from the rows.
void CompareGains(Validation& validation);

}  // namespace isthmus::studies
