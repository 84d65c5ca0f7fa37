#pragma once

#include <filesystem>
#include <string>

#include "reports/table.h"
#include "studies/validate.h"

namespace isthmus::studies {

/// One JSON object with the keys of the command line's contract; ends with a line break. Errors and
/// shares are fractions, gains are per cent.
std::string RenderJson(const Validation& validation);

/// For the terminal: errors by group, gains, the largest errors, why rows were skipped.
std::string RenderText(const Validation& validation);

/// One row per run: measured, predicted, error of step time and memory, or why it was skipped.
reports::Table RowsTable(const Validation& validation);
/// One row per group.
reports::Table GroupsTable(const Validation& validation);
reports::Table GainsTable(const Validation& validation);
reports::Table GainSummaryTable(const Validation& validation);
/// Pairs of rows that no setting explains, and what they differ in.
reports::Table ContradictionsTable(const Validation& validation);
/// Out-of-memory verdicts beside what happened.
reports::Table VerdictsTable(const Validation& validation);
/// Why rows were skipped, the most frequent reason first.
reports::Table SkippedTable(const Validation& validation);

/// Writes rows, groups, gains, gain_summary, contradictions, verdicts and skipped as .md and .csv,
/// assumptions.md, result.json, scatter.svg, and the scenarios below scenarios/<table>/<row
/// id>.yaml. Throws base::IoError.
void WriteFolder(const Validation& validation, const std::filesystem::path& folder);

}  // namespace isthmus::studies
