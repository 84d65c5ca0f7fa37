#include <string>

#include "studies/internal/training_row.h"
#include "studies/internal/training_spec.h"
#include "studies/run_case.h"

namespace isthmus::studies {
namespace {

using namespace internal;

void Measure(const RunsRow& row, RunsKind kind, RunCase& run) {
  const std::string& metric = row.text("mem_metric");
  const bool is_memory = kind == RunsKind::kMemoryPoints;
  if (!is_memory) {
    run.measured_step_time_s = row.number("step_time_s");
    if (!run.measured_step_time_s) run.measured_step_time_s = row.number("derived_step_time_s");
  }
  // What several sources print as GB is GiB: the zero-bubble fork, nanotron (modelling_memory §5).
  const char* column = is_memory ? "value_gib" : "peak_mem_gib";
  run.ran_out_of_memory = row.text(column).starts_with('>');
  if (run.ran_out_of_memory) return;
  run.measured_memory_gib = row.number(column);
  const bool is_decimal = metric.starts_with("GB") && !Has(metric, "nanotron") &&
                          !Has(row.text("framework"), "zero-bubble");
  if (is_decimal && run.measured_memory_gib) *run.measured_memory_gib *= 1e9 / kGiB;
  if (Has(metric, "reserved")) run.memory_counter = MemoryCounter::kReserved;
  if (Has(metric, "memory_usage") || Has(metric, "GPU Mem")) {
    run.memory_counter = MemoryCounter::kDevice;
  }
}

}  // namespace

RunCase MakeTrainingCase(const RunsRow& row, RunsKind kind) {
  RunCase run{.row_id = row.text("row_id"),
              .table = ToText(kind),
              .gpu = row.text("gpu"),
              .model = row.text("model"),
              .framework = row.text("framework")};
  run.why = WhyNotTraining(row, kind);
  if (run.why.empty()) CheckCells(row);
  if (run.why.empty()) Measure(row, kind, run);
  const bool has_figure = run.measured_step_time_s || run.measured_memory_gib;
  if (run.why.empty() && !has_figure && !run.ran_out_of_memory) {
    run.why = "neither a step time nor a memory figure";
  }
  if (run.why.empty()) TrainingSpec(row, kind).Fill(run);
  return run;
}

}  // namespace isthmus::studies
