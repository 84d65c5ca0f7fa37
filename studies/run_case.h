#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/shipped.h"
#include "scenarios/spec.h"
#include "studies/runs_csv.h"

namespace isthmus::studies {

inline constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;  ///< bytes

/// What a published memory figure counts.
enum class MemoryCounter : std::uint8_t {
  kAllocated,  ///< tensors and workspace
  kReserved,   ///< with the allocator's slack (modelling_memory §5)
  kDevice,     ///< with CUDA context and NCCL, as nvidia-smi shows it
};

/// What an alternative to a scored scenario does to the answer.
enum class AlternativeUse : std::uint8_t {
  /// Another end of a cell that only a range is known of (microbatch, vpp): the midpoint between
  /// the fastest and the slowest end is the prediction.
  kMidpoint,
  /// Another value of an open cell whose default is an assumption: widens bracket and band.
  kOpen,
  /// The same, but the release's code decides the default: widens the bracket only.
  kSettled,
};

/// A scenario that the row's cells allow as well.
struct Alternative {
  std::string what;  ///< "fp32 gradients"
  AlternativeUse use = AlternativeUse::kOpen;
  scenarios::ScenarioSpec spec;
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
  std::string release;    ///< "NeMo 24.11": what of the framework the row says
  std::string precision;  ///< as the row spells it
  /// Rows with the same text differ in the number of GPUs and the batch only: one observation.
  std::string recipe;
  /// Rows with the same text have the same layout on the same GPUs, whatever their model.
  std::string layout;
  std::optional<scenarios::ScenarioSpec> spec;
  /// Where the release's defaults were chosen after seeing runs: `spec` without them.
  std::optional<scenarios::ScenarioSpec> strict_spec;
  std::vector<Alternative> alternatives;
  std::string why;

  std::optional<double> measured_step_time_s;
  std::optional<double> measured_memory_gib;
  MemoryCounter memory_counter = MemoryCounter::kAllocated;
  bool ran_out_of_memory = false;  ///< the row says so; it has no figure then

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
