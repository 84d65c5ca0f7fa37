#include "studies/internal/row_prediction.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "scenarios/scenario.h"
#include "sim/memory/ledger.h"
#include "studies/predict.h"

namespace isthmus::studies::internal {
namespace {

std::int64_t BytesBy(MemoryCounter counter, std::int64_t allocated, std::int64_t reserved,
                     std::int64_t device) {
  switch (counter) {
    case MemoryCounter::kAllocated:
      return allocated;
    case MemoryCounter::kReserved:
      return reserved;
    case MemoryCounter::kDevice:
      return device;
  }
  return allocated;
}

// Of the fullest rank.
double MemoryGib(const reports::Figures& figures, MemoryCounter counter) {
  std::int64_t most = 0;
  for (const reports::MemoryFigure& figure : figures.memory) {
    most = std::max(
        most, BytesBy(counter, figure.allocated_bytes, figure.reserved_bytes, figure.peak_bytes));
  }
  return static_cast<double>(most) / kGiB;
}

std::string WorstVerdict(const reports::Figures& figures) {
  return figures.memory.empty() ? "" : figures.memory.front().verdict;
}

std::optional<double> RelativeError(std::optional<double> predicted,
                                    std::optional<double> measured) {
  return predicted && measured && *measured > 0 ? std::optional(*predicted / *measured - 1)
                                                : std::nullopt;
}

// Everything about one row; times are those of the row's metric.
class RowPrediction {
 public:
  RowPrediction(RunCase run, const ValidateOptions& options) : options_(options) {
    result_.run = std::move(run);
  }

  RowResult Run() {
    const RunCase& run = result_.run;
    const scenarios::Scenario scenario = scenarios::ParseScenario(*run.spec, options_.search);
    result_.assumptions = scenario.assumptions;
    result_.scenario_yaml = scenarios::WriteScenario(*run.spec);
    const StepSimulation simulation(scenario, options_.network);
    const Prediction prediction = simulation.Predict(options_.commit);
    TakeFigures(prediction);
    if (options_.with_alternatives) RunStrictMemory(simulation);
    if (options_.with_alternatives && prediction.figures.has_times && !run.ran_out_of_memory) {
      base_s_ = prediction.step_time_s;
      RunAlternatives(WorstVerdict(prediction.figures) != "does_not_fit");
      Score();
      if (run.measured_step_time_s) {
        RunStrict(simulation);
        EstimateBand(simulation);
      }
    }
    result_.error = RelativeError(result_.predicted_step_time_s, run.measured_step_time_s);
    result_.strict_error = RelativeError(result_.strict_step_time_s, run.measured_step_time_s);
    result_.memory_error = RelativeError(result_.predicted_memory_gib, run.measured_memory_gib);
    result_.is_predicted = true;
    return std::move(result_);
  }

 private:
  void TakeFigures(const Prediction& prediction) {
    if (prediction.figures.has_times) {
      result_.predicted_step_time_s = prediction.step_time_s;
      result_.predicted_full_step_time_s = prediction.figures.step_time_s;
    }
    result_.assumptions = prediction.figures.assumptions;
    result_.predicted_memory_gib = MemoryGib(prediction.figures, result_.run.memory_counter);
    result_.verdict = WorstVerdict(prediction.figures);
    result_.work_flops =
        prediction.figures.model_tflops_per_gpu * 1e12 * prediction.figures.step_time_s;
  }

  void RunAlternatives(bool scored_fits) {
    for (const Alternative& alternative : result_.run.alternatives) {
      try {
        const scenarios::Scenario scenario =
            scenarios::ParseScenario(alternative.spec, options_.search);
        const Prediction prediction = StepSimulation(scenario, options_.network).Predict({});
        const bool is_end = alternative.use == AlternativeUse::kMidpoint;
        const bool fits = WorstVerdict(prediction.figures) != "does_not_fit";
        if (is_end && scored_fits && !fits) {
          result_.assumptions.push_back(
              fmt::format("{}: left out, it does not fit the memory", alternative.what));
          continue;
        }
        result_.alternative_times.push_back(
            {alternative.what, alternative.use, prediction.step_time_s});
      } catch (const base::IoError&) {
        throw;
      } catch (const base::Error&) {
        result_.assumptions.push_back(
            fmt::format("{}: left out, the rest of the row does not allow it", alternative.what));
      }
    }
  }

  // The midpoint between the ends of open ranges, and the bracket around it: the ends and, on top,
  // every other open cell at its fastest and at its slowest.
  void Score() {
    double low = base_s_;
    double high = base_s_;
    for (const AlternativeTime& time : result_.alternative_times) {
      if (time.use != AlternativeUse::kMidpoint) continue;
      low = std::min(low, time.step_time_s);
      high = std::max(high, time.step_time_s);
    }
    scale_ = (low + high) / 2 / base_s_;
    *result_.predicted_step_time_s *= scale_;
    *result_.predicted_full_step_time_s *= scale_;
    if (result_.alternative_times.empty()) return;
    for (const AlternativeTime& time : result_.alternative_times) {
      if (time.use == AlternativeUse::kMidpoint) continue;
      low *= std::min(1.0, time.step_time_s / base_s_);
      high *= std::max(1.0, time.step_time_s / base_s_);
    }
    result_.bracket = reports::Band{.low_step_time_s = low, .high_step_time_s = high};
  }

  void RunStrict(const StepSimulation& simulation) {
    if (!result_.run.strict_spec) {
      TakeStrict(simulation);
      return;
    }
    const scenarios::Scenario strict =
        scenarios::ParseScenario(*result_.run.strict_spec, options_.search);
    TakeStrict(StepSimulation(strict, options_.network));
  }

  // Figure and verdict without what was chosen after seeing runs: memory needs no simulation.
  void RunStrictMemory(const StepSimulation& simulation) {
    if (!result_.run.strict_spec) {
      TakeStrictMemory(simulation.scenario(), simulation.program());
      return;
    }
    const scenarios::Scenario strict =
        scenarios::ParseScenario(*result_.run.strict_spec, options_.search);
    TakeStrictMemory(strict, plan::Build(strict.job));
  }

  void TakeStrictMemory(const scenarios::Scenario& scenario, const plan::Program& program) {
    const sim::MemoryFacts facts =
        sim::ReadMemoryFacts(scenario.profile.Strict(), scenario.job.allocator);
    std::int64_t most = 0;
    std::int64_t device = -1;
    for (const sim::RankMemory& kind : sim::PredictMemory(program, facts)) {
      const traces::MemoryPeak& peak = kind.peak;
      most = std::max(most, BytesBy(result_.run.memory_counter, peak.peak_bytes,
                                    peak.reserved_bytes, peak.device_bytes));
      if (peak.device_bytes <= device) continue;
      device = peak.device_bytes;
      result_.strict_verdict = peak.verdict;
    }
    result_.strict_memory_error =
        RelativeError(static_cast<double>(most) / kGiB, result_.run.measured_memory_gib);
  }

  void TakeStrict(const StepSimulation& simulation) {
    const scenarios::Scenario& scenario = simulation.scenario();
    const double time = simulation.StepTime(simulation.profile().Strict(), scenario.cluster);
    result_.strict_step_time_s = time * scale_;
    result_.strict_full_step_time_s = time / base_s_ * *result_.predicted_full_step_time_s;
  }

  void EstimateBand(const StepSimulation& simulation) {
    StepBand band = studies::EstimateBand(simulation, base_s_);
    band.low_step_time_s *= scale_;
    band.high_step_time_s *= scale_;
    std::vector<double> others;
    for (const AlternativeTime& time : result_.alternative_times) {
      if (time.use == AlternativeUse::kMidpoint) others.push_back(time.step_time_s);
      if (time.use == AlternativeUse::kOpen) others.push_back(time.step_time_s * scale_);
    }
    const bool has_ends = scale_ != 1;
    if (has_ends) others.push_back(base_s_);
    Widen(others, *result_.predicted_step_time_s, band);
    result_.band = std::move(band);
  }

  const ValidateOptions& options_;
  RowResult result_;
  double base_s_ = 0;  // of the scored scenario, before the midpoint
  double scale_ = 1;   // the midpoint over base_s_
};

// What a failure comes down to in one line.
std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

RowResult PredictRow(RunCase run, const ValidateOptions& options) {
  if (!run.spec) return {.run = std::move(run)};
  std::string why;
  try {
    return RowPrediction(run, options).Run();
  } catch (const base::ScenarioError& error) {
    // The row's own fault: a layout that does not tile, a batch that does not divide.
    why = fmt::format("no valid scenario: {}", error.diagnostics().front().message);
  } catch (const base::IoError&) {
    throw;
  } catch (const base::Error& error) {
    why = FirstLine(error.what());
  }
  run.why = std::move(why);
  return {.run = std::move(run)};
}

}  // namespace isthmus::studies::internal
