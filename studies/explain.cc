#include "studies/explain.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "reports/table.h"
#include "scenarios/scenario.h"
#include "studies/duty_relief.h"
#include "studies/internal/cells.h"

namespace isthmus::studies {
namespace {

using namespace internal;
using reports::Align;
using reports::Table;

constexpr std::size_t kKernelsShown = 12;
constexpr Table::TextStyle kRowsOnly{.indent = 2, .gap = 2, .titles = false};

std::string Share(double fraction) { return fmt::format("{:.1f} %", fraction * 100); }

std::string TimesText(const RowResult& row) {
  Table table({{"what"}, {"s", Align::kRight}, {"error %", Align::kRight}});
  table.AddRow({"measured", Number(row.run.measured_step_time_s, 3), ""});
  table.AddRow({"predicted", Number(row.predicted_step_time_s, 3), SignedPercent(row.error)});
  table.AddRow({"strict", Number(row.strict_step_time_s, 3), SignedPercent(row.strict_error)});
  if (row.band) {
    table.AddRow({"80 % band", Range(row.band->low_step_time_s, row.band->high_step_time_s), ""});
  }
  if (row.bracket) {
    table.AddRow({"bracket of open cells",
                  Range(row.bracket->low_step_time_s, row.bracket->high_step_time_s), ""});
  }
  for (const AlternativeTime& time : row.alternative_times) {
    table.AddRow({"  with " + time.what, Number(time.step_time_s, 3), ""});
  }
  return table.RenderText(kRowsOnly);
}

std::string UsesText(const reports::Figures& figures) {
  Table table({{"use"}, {"share", Align::kRight}, {"s", Align::kRight}});
  for (std::size_t use = 0; use < figures.shares.size(); ++use) {
    table.AddRow({reports::ToText(static_cast<reports::TimeUse>(use)), Share(figures.shares[use]),
                  fmt::format("{:.3f}", figures.shares[use] * figures.step_time_s)});
  }
  for (const reports::ExposedComm& exposed : figures.exposed) {
    table.AddRow({"  exposed " + exposed.kind, Share(exposed.seconds / figures.step_time_s),
                  fmt::format("{:.3f}", exposed.seconds)});
  }
  return table.RenderText(kRowsOnly);
}

std::string BandText(const StepBand& band) {
  Table table({{"input"}, {"low", Align::kRight}, {"high", Align::kRight}});
  for (const BandPart& part : band.parts) {
    table.AddRow({part.what, fmt::format("{:+.2f} %", part.low * 100),
                  fmt::format("{:+.2f} %", part.high * 100)});
  }
  return table.RenderText(kRowsOnly);
}

std::string KernelsText(const Explanation& explanation) {
  Table table({{"kernel"},
               {"shape"},
               {"number", Align::kRight},
               {"s", Align::kRight},
               {"of the step", Align::kRight}});
  const double step = explanation.prediction.figures.step_time_s;
  for (const KernelTime& time : explanation.kernels) {
    if (table.num_rows() == kKernelsShown) break;
    table.AddRow({time.segment, time.shape, fmt::format("{}", time.count),
                  fmt::format("{:.3f}", time.seconds), Share(time.seconds / step)});
  }
  return table.RenderText();
}

std::string MemoryText(const Explanation& explanation) {
  const RowResult& row = explanation.row;
  Table table({{"what"}, {"GiB", Align::kRight}});
  if (row.run.measured_memory_gib) {
    table.AddRow({"measured", Number(row.run.measured_memory_gib, 2)});
  }
  table.AddRow({"predicted, the same counter", Number(row.predicted_memory_gib, 2)});
  const auto& memory = explanation.prediction.figures.memory;
  if (!memory.empty()) {
    for (const auto& [category, bytes] : memory.front().categories) {
      table.AddRow({"  " + category, fmt::format("{:.2f}", static_cast<double>(bytes) / kGiB)});
    }
  }
  return table.RenderText(kRowsOnly);
}

}  // namespace

Explanation ExplainRow(const ValidateOptions& options, const std::string& row_id) {
  ValidateOptions one = options;
  one.only_row = row_id;
  Validation validation = Validate(one);
  if (validation.rows.empty()) {
    throw base::Error(fmt::format("--explain {}: no given file holds such a row", row_id));
  }
  Explanation explanation{.row = std::move(validation.rows.front())};
  if (!explanation.row.is_predicted) {
    throw base::Error(
        fmt::format("--explain {}: not predicted: {}", row_id, explanation.row.run.why));
  }
  const scenarios::Scenario scenario =
      scenarios::ParseScenario(*explanation.row.run.spec, options.search);
  const StepSimulation simulation(scenario, options.network);
  explanation.prediction = simulation.Predict(options.commit);
  reports::Figures& figures = explanation.prediction.figures;
  if (HasPowerBalance(scenario.profile)) {
    const sim::DutyRelief relief = EstimateDutyRelief(simulation.program(), scenario.profile,
                                                      simulation.profile(), figures.step_time_s);
    figures.duty_relief = reports::DutyRelief{relief.clock_ratio, relief.step_time_s};
  }
  explanation.kernels = KernelTimes(simulation.program(), simulation.profile());
  return explanation;
}

std::string RenderText(const Explanation& explanation) {
  const RowResult& row = explanation.row;
  std::string text = fmt::format("{}: {}\n  {}, {}, {}\n", row.run.row_id, row.run.model,
                                 row.run.gpu, row.run.release, row.run.layout);
  text += "\nStep time\n" + TimesText(row);
  if (const auto& relief = explanation.prediction.figures.duty_relief) {
    text += fmt::format("  at its power balance: clock {:.2f}, step {:.3f} s\n",
                        relief->clock_ratio, relief->step_time_s);
  }
  text += "\nWhere the predicted step goes, mean over ranks\n" +
          UsesText(explanation.prediction.figures);
  text += "\nThe longest kernels of the busiest rank\n" + KernelsText(explanation);
  if (row.band) text += "\nWhat the band is made of\n" + BandText(*row.band);
  text += "\nMemory of the fullest rank\n" + MemoryText(explanation);
  text += "\nAssumptions\n";
  for (const std::string& assumption : row.assumptions) text += "  - " + assumption + "\n";
  return text;
}

}  // namespace isthmus::studies
