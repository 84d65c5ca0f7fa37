#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "studies/internal/cells.h"
#include "studies/validation_text.h"

namespace isthmus::studies {

using namespace internal;
using reports::Align;

reports::Table RowsTable(const Validation& validation) {
  reports::Table table({{"row"},
                        {"table"},
                        {"gpu"},
                        {"model"},
                        {"measured s", Align::kRight},
                        {"predicted s", Align::kRight},
                        {"error %", Align::kRight},
                        {"measured GiB", Align::kRight},
                        {"predicted GiB", Align::kRight},
                        {"memory error %", Align::kRight},
                        {"verdict"},
                        {"why skipped"},
                        {"set"},
                        {"release"},
                        {"precision"},
                        {"strict s", Align::kRight},
                        {"strict error %", Align::kRight},
                        {"bracket s", Align::kRight},
                        {"80 % band s", Align::kRight},
                        {"in band"},
                        {"strict memory error %", Align::kRight},
                        {"strict verdict"}});
  for (const RowResult& row : validation.rows) {
    table.AddRow(
        {row.run.row_id,
         row.run.table,
         row.run.gpu,
         row.run.model,
         Number(row.run.measured_step_time_s, 3),
         Number(row.predicted_step_time_s, 3),
         SignedPercent(row.error),
         Number(row.run.measured_memory_gib, 1),
         Number(row.predicted_memory_gib, 1),
         SignedPercent(row.memory_error),
         row.verdict,
         row.is_predicted ? "" : row.run.why,
         row.set,
         row.run.release,
         row.run.precision,
         Number(row.strict_step_time_s, 3),
         SignedPercent(row.strict_error),
         row.bracket ? Range(row.bracket->low_step_time_s, row.bracket->high_step_time_s) : "",
         row.band ? Range(row.band->low_step_time_s, row.band->high_step_time_s) : "",
         !row.band       ? ""
         : IsInBand(row) ? "yes"
                         : "no",
         SignedPercent(row.strict_memory_error),
         row.strict_verdict});
  }
  return table;
}

namespace {

void AddGroup(reports::Table& table, const RowGroup& group) {
  table.AddRow({group.by, reports::Shorten(group.name, 120), fmt::format("{}", group.step_time.n),
                Percent(group.step_time.median_abs_error), Percent(group.step_time.p90_abs_error),
                SignedPercent(group.step_time.mean_signed_error), fmt::format("{}", group.memory.n),
                Percent(group.memory.median_abs_error),
                SignedPercent(group.memory.mean_signed_error), fmt::format("{}", group.num_skipped),
                Percent(group.strict.median_abs_error), Percent(group.strict.p90_abs_error),
                SignedPercent(group.strict.mean_signed_error), fmt::format("{}", group.recipes.n),
                Percent(group.recipes.median_abs_error), Percent(group.recipes.p90_abs_error),
                Percent(ShareInBand(group)), Percent(group.strict_memory.median_abs_error),
                SignedPercent(group.strict_memory.mean_signed_error)});
}

}  // namespace

reports::Table GroupsTable(const Validation& validation) {
  reports::Table table({{"by"},
                        {"group"},
                        {"rows", Align::kRight},
                        {"median |error| %", Align::kRight},
                        {"p90 %", Align::kRight},
                        {"bias %", Align::kRight},
                        {"memory rows", Align::kRight},
                        {"median |error| %", Align::kRight},
                        {"bias %", Align::kRight},
                        {"skipped", Align::kRight},
                        {"strict median %", Align::kRight},
                        {"strict p90 %", Align::kRight},
                        {"strict bias %", Align::kRight},
                        {"recipes", Align::kRight},
                        {"recipe median %", Align::kRight},
                        {"recipe p90 %", Align::kRight},
                        {"in 80 % band, %", Align::kRight},
                        {"strict memory median %", Align::kRight},
                        {"strict memory bias %", Align::kRight}});
  AddGroup(table, validation.summary);
  for (const RowGroup& group : validation.groups) AddGroup(table, group);
  return table;
}

namespace {

void AddVerdicts(reports::Table& table, const VerdictScore& score, const char* variant,
                 const VerdictCounts& counts) {
  table.AddRow({score.framework, variant, fmt::format("{}", counts.out_of_memory),
                fmt::format("{}", counts.ran), fmt::format("{:.3f}", counts.precision()),
                fmt::format("{:.3f}", counts.recall()), fmt::format("{:.3f}", counts.fits_kept())});
}

}  // namespace

reports::Table VerdictsTable(const Validation& validation) {
  reports::Table table({{"framework"},
                        {"variant"},
                        {"ran out", Align::kRight},
                        {"ran", Align::kRight},
                        {"precision", Align::kRight},
                        {"recall", Align::kRight},
                        {"fits kept", Align::kRight}});
  for (const VerdictScore& score : validation.verdicts) {
    AddVerdicts(table, score, "scored", score.scored);
    AddVerdicts(table, score, "strict", score.strict);
  }
  return table;
}

reports::Table GainsTable(const Validation& validation) {
  reports::Table table({{"table"},
                        {"workload"},
                        {"mode"},
                        {"measured %", Align::kRight},
                        {"predicted %", Align::kRight},
                        {"difference, points", Align::kRight},
                        {"strict %", Align::kRight}});
  for (const Gain& gain : validation.gains) {
    table.AddRow({gain.table, gain.workload, gain.mode, fmt::format("{:+.1f}", gain.measured_pct),
                  fmt::format("{:+.1f}", gain.predicted_pct),
                  fmt::format("{:+.1f}", gain.predicted_pct - gain.measured_pct),
                  fmt::format("{:+.1f}", gain.strict_pct)});
  }
  return table;
}

reports::Table GainSummaryTable(const Validation& validation) {
  reports::Table table({{"table"},
                        {"pairs", Align::kRight},
                        {"signs right", Align::kRight},
                        {"with +-3 points", Align::kRight},
                        {"median |error|, points", Align::kRight},
                        {"bias", Align::kRight},
                        {"constant per table", Align::kRight},
                        {"correlation", Align::kRight}});
  for (const GainSummary& summary : validation.gain_summaries) {
    table.AddRow(
        {summary.table, fmt::format("{}", summary.n), fmt::format("{}", summary.num_signs_right),
         fmt::format("{}", summary.num_signs_within_3_pct),
         fmt::format("{:.1f}", summary.median_abs_error_pct),
         fmt::format("{:+.1f}", summary.bias_pct),
         fmt::format("{:.1f}", summary.constant_baseline_pct), Number(summary.correlation, 2)});
  }
  return table;
}

reports::Table ContradictionsTable(const Validation& validation) {
  reports::Table table({{"faster row"},
                        {"slower row"},
                        {"work", Align::kRight},
                        {"measured", Align::kRight},
                        {"predicted", Align::kRight},
                        {"the rows differ in"}});
  const auto ratio = [](double value) { return fmt::format("{:+.1f} %", (value - 1) * 100); };
  for (const Contradiction& pair : validation.contradictions) {
    table.AddRow({pair.first, pair.second, ratio(pair.work_ratio), ratio(pair.measured_ratio),
                  ratio(pair.predicted_ratio), pair.differs});
  }
  return table;
}

reports::Table SkippedTable(const Validation& validation) {
  reports::Table table({{"rows", Align::kRight}, {"why skipped"}});
  std::vector<std::pair<int, std::string>> reasons;
  for (const auto& [reason, count] : validation.skipped_by_reason) {
    reasons.emplace_back(count, reason);
  }
  std::ranges::stable_sort(reasons, [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [count, reason] : reasons) table.AddRow({fmt::format("{}", count), reason});
  return table;
}

}  // namespace isthmus::studies
