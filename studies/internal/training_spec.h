#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "studies/internal/open_cells.h"
#include "studies/internal/release.h"
#include "studies/run_case.h"

namespace isthmus::studies::internal {

// Fills a scenario from a row of training_runs or memory_points that nothing stands against, and
// lists what the row leaves open. Lifetime: the row must outlive it; used once.
class TrainingSpec {
 public:
  TrainingSpec(const RunsRow& row, RunsKind kind)
      : row_(row), kind_(kind), release_(ReleaseOf(row)) {
    spec_.modules.emplace_back();
  }

  // Fills spec, strict_spec, alternatives and the names that rows are grouped by.
  void Fill(RunCase& run);

 private:
  template <typename... Args>
  void Assume(fmt::format_string<Args...> text, Args&&... args) {
    spec_.assumptions.push_back(fmt::format(text, std::forward<Args>(args)...));
  }
  scenarios::ModuleSpec& llm() { return spec_.modules.front(); }

  void FillModel(scenarios::ModelSpec& model);
  std::int64_t Degree(const char* column);
  void FillLayout();
  void FillDeferral();
  // Eager frameworks of the collection run plain 1F1B.
  bool Interleaves() const;
  void OpenStages(std::int64_t most);
  // Samples that a data-parallel copy gets in a step; nothing when it can't be told.
  std::optional<std::int64_t> SamplesPerCopy();
  void FillWorkload();
  void FillPacking(scenarios::WorkloadSpec& workload);
  void FillMicrobatch(scenarios::WorkloadSpec& workload);
  void Name(RunCase& run);

  // training_settings.cc
  void FillSettings(plan::ModuleSettings& settings);
  void FillTensorParallel(plan::ModuleSettings& settings);
  void FillGradients(plan::ModuleSettings& settings);
  void FillAttention(plan::ModuleSettings& settings);
  void FillOptimizer();
  // A default of the release, with its reason and mark.
  void AssumeDefault(std::string_view key, std::string_view value);
  const plan::DefaultReason* ReasonOf(std::string_view key) const;
  plan::DefaultMark MarkOf(std::string_view key) const;
  // training_memory.cc
  void FillMemory();
  // Reduced Llama models of Megatron-Core on B200: what their names and launch scripts say.
  bool IsTruncatedLlama() const;
  void FillTruncatedLlama();
  void FillRunningCostSplit();
  void FillInterleaving();
  // A value was chosen after seeing rows: the strict variant changes it.
  void Unless(std::function<void(scenarios::ScenarioSpec&)> change);
  // Lists another value of a cell whose default the release decides; where that default was chosen
  // after seeing runs, the strict variant takes this one.
  void Open(std::string_view key, std::string what,
            std::function<void(plan::ModuleSettings&)> change);
  void OpenScenario(std::string_view key, std::string what,
                    const std::function<void(scenarios::ScenarioSpec&)>& change);

  const RunsRow& row_;
  RunsKind kind_;
  RowRelease release_;
  scenarios::ScenarioSpec spec_;
  std::vector<OpenCell> open_;
  std::function<void(scenarios::ScenarioSpec&)> strict_;  // empty: nothing to change
};

}  // namespace isthmus::studies::internal
