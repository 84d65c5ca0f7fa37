#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "studies/runs_csv.h"

// What can be told from a row of training_runs or memory_points.
namespace isthmus::studies::internal {

bool Has(std::string_view text, std::string_view part);
std::string Lower(std::string text);
std::string Upper(std::string text);
std::int64_t IntegerOr(const RunsRow& row, std::string_view column, std::int64_t fallback);

// Throws base::Error at a cell whose number no run can have: degrees, dimensions and counts below
// 1, measured figures that aren't above 0. Of rows that can be predicted only.
void CheckCells(const RunsRow& row);

// GPT-2 and GPT-3 style: learned positions, tied embeddings.
bool IsGpt(const RunsRow& row);
// The name of a shipped cluster of the row's GPU.
std::optional<std::string> ClusterOf(const RunsRow& row);

// Which MLP a model has is no column of its own: by family, else by the parameter count.
enum class Mlp : std::uint8_t { kPlain, kGated, kUnknown };
Mlp MlpOf(const RunsRow& row);

// Why a row can't be predicted; empty if it can.
std::string WhyNotTraining(const RunsRow& row, RunsKind kind);

}  // namespace isthmus::studies::internal
