#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "scenarios/shipped.h"
#include "scenarios/spec.h"
#include "studies/runs_csv.h"

namespace isthmus::studies {

/// What a published memory figure counts.
enum class MemoryCounter : std::uint8_t {
  kAllocated,  ///< tensors and workspace
  kReserved,   ///< with the allocator's slack: allocated · 1.01 + 0.6 GiB (modelling_memory §5)
  kDevice,     ///< with CUDA context and NCCL, as nvidia-smi shows it
};

/// One row of a file of runs as something to simulate and to compare with.
///
/// Either `spec` is there, with every value that the row leaves open filled from a stated default
/// and listed among its assumptions, or `why` says what stands in the way.
struct RunCase {
  std::string row_id;
  std::string table;  ///< of the paper "A2", "A3", …; else the kind of the file
  std::string gpu;
  std::string model;
  std::string framework;
  std::optional<scenarios::ScenarioSpec> spec;
  std::string why;

  std::optional<double> measured_step_time_s;
  std::optional<double> measured_memory_gib;
  MemoryCounter memory_counter = MemoryCounter::kAllocated;

  // Rows that are one workload in several modes: "A2.1" in "H" (homogeneous), "C", "NC".
  std::string workload;
  std::string mode;
  std::optional<double> measured_gain_pct;  ///< as printed, over mode H; of a "on par" from times
};

/// Reads a row. Throws base::Error with file and line for a cell that can't be read.
RunCase MakeCase(const RunsRow& row, RunsKind kind, const scenarios::SearchPaths& search);

/// Rows of training_runs and memory_points: dense LLMs of one module.
RunCase MakeTrainingCase(const RunsRow& row, RunsKind kind);

/// Rows of the heterogeneous-parallelism paper (arXiv 2605.27678), tables A2, A3, A4. What these
/// tables don't print is set alike for all rows of a table; see docs/validate.md.
RunCase MakePaperCase(const RunsRow& row, const scenarios::SearchPaths& search);

}  // namespace isthmus::studies
