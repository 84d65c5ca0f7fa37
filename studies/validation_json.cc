#include <nlohmann/json.hpp>

#include "studies/explain.h"
#include "studies/internal/cells.h"
#include "studies/validation_text.h"

namespace isthmus::studies {
namespace {

using Json = nlohmann::ordered_json;

Json OrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json BandJson(double low, double high) {
  return {{"low_step_time_s", low}, {"high_step_time_s", high}};
}

Json StatisticsJson(const ErrorStatistics& statistics) {
  return {{"n", statistics.n},
          {"median_abs_error", OrNull(statistics.median_abs_error)},
          {"p90_abs_error", OrNull(statistics.p90_abs_error)},
          {"mean_signed_error", OrNull(statistics.mean_signed_error)}};
}

Json GroupJson(const RowGroup& group) {
  Json json{{"n", group.step_time.n}, {"skipped", group.num_skipped}};
  json.update(StatisticsJson(group.step_time));
  json["memory"] = StatisticsJson(group.memory);
  json["memory"]["strict"] = StatisticsJson(group.strict_memory);
  json["strict"] = StatisticsJson(group.strict);
  json["recipes"] = StatisticsJson(group.recipes);
  json["share_in_band"] = OrNull(internal::ShareInBand(group));
  return json;
}

Json OpenJson(const std::vector<AlternativeTime>& times) {
  Json json = Json::array();
  for (const AlternativeTime& time : times) {
    json.push_back({{"what", time.what}, {"step_time_s", time.step_time_s}});
  }
  return json;
}

Json ContradictionsJson(const std::vector<Contradiction>& contradictions) {
  Json json = Json::array();
  for (const Contradiction& pair : contradictions) {
    json.push_back({{"first", pair.first},
                    {"second", pair.second},
                    {"work_ratio", pair.work_ratio},
                    {"measured_ratio", pair.measured_ratio},
                    {"predicted_ratio", pair.predicted_ratio},
                    {"differs", pair.differs}});
  }
  return json;
}

Json RowJson(const RowResult& row) {
  return {{"row_id", row.run.row_id},
          {"status", row.is_predicted ? "predicted" : "skipped"},
          {"why", row.is_predicted ? Json(nullptr) : Json(row.run.why)},
          {"measured_step_time_s", OrNull(row.run.measured_step_time_s)},
          {"predicted_step_time_s", OrNull(row.predicted_step_time_s)},
          {"error", OrNull(row.error)},
          {"measured_memory_gib", OrNull(row.run.measured_memory_gib)},
          {"predicted_memory_gib", OrNull(row.predicted_memory_gib)},
          {"memory_error", OrNull(row.memory_error)},
          {"memory_verdict", row.verdict.empty() ? Json(nullptr) : Json(row.verdict)},
          {"ran_out_of_memory", row.run.ran_out_of_memory},
          {"strict_memory_error", OrNull(row.strict_memory_error)},
          {"strict_memory_verdict",
           row.strict_verdict.empty() ? Json(nullptr) : Json(row.strict_verdict)},
          {"assumptions", row.assumptions},
          {"release", row.run.release},
          {"precision", row.run.precision},
          {"recipe", row.run.recipe},
          {"strict_step_time_s", OrNull(row.strict_step_time_s)},
          {"strict_error", OrNull(row.strict_error)},
          {"bracket", row.bracket
                          ? BandJson(row.bracket->low_step_time_s, row.bracket->high_step_time_s)
                          : Json(nullptr)},
          {"band", row.band ? BandJson(row.band->low_step_time_s, row.band->high_step_time_s)
                            : Json(nullptr)},
          {"open", OpenJson(row.alternative_times)}};
}

Json GainsJson(const std::vector<Gain>& gains) {
  Json json = Json::array();
  for (const Gain& gain : gains) {
    json.push_back({{"workload", gain.workload},
                    {"mode", gain.mode},
                    {"measured_pct", gain.measured_pct},
                    {"predicted_pct", gain.predicted_pct},
                    {"strict_pct", gain.strict_pct}});
  }
  return json;
}

Json CountsJson(const VerdictCounts& counts) {
  return {{"out_of_memory", counts.out_of_memory},
          {"ran", counts.ran},
          {"precision", counts.precision()},
          {"recall", counts.recall()},
          {"fits_kept", counts.fits_kept()}};
}

Json VerdictsJson(const std::vector<VerdictScore>& verdicts) {
  Json json = Json::array();
  for (const VerdictScore& score : verdicts) {
    Json entry{{"framework", score.framework}};
    entry.update(CountsJson(score.scored));
    entry["strict"] = CountsJson(score.strict);
    json.push_back(std::move(entry));
  }
  return json;
}

Json GainSummariesJson(const std::vector<GainSummary>& summaries) {
  Json json = Json::array();
  for (const GainSummary& summary : summaries) {
    json.push_back({{"table", summary.table},
                    {"n", summary.n},
                    {"signs_right", summary.num_signs_right},
                    {"signs_right_within_3_pct", summary.num_signs_within_3_pct},
                    {"median_abs_error_pct", summary.median_abs_error_pct},
                    {"bias_pct", summary.bias_pct},
                    {"constant_baseline_pct", summary.constant_baseline_pct},
                    {"correlation", OrNull(summary.correlation)}});
  }
  return json;
}

}  // namespace

std::string RenderJson(const Validation& validation) {
  Json rows = Json::array();
  for (const RowResult& row : validation.rows) rows.push_back(RowJson(row));
  Json groups = Json::array();
  for (const RowGroup& group : validation.groups) {
    Json json{{"by", group.by}, {"name", group.name}};
    json.update(GroupJson(group));
    groups.push_back(std::move(json));
  }
  Json skipped = Json::object();
  for (const auto& [reason, count] : validation.skipped_by_reason) skipped[reason] = count;
  const Json json{{"rows", rows},
                  {"summary", GroupJson(validation.summary)},
                  {"groups", groups},
                  {"gains", GainsJson(validation.gains)},
                  {"gain_summary", GainSummariesJson(validation.gain_summaries)},
                  {"contradictions", ContradictionsJson(validation.contradictions)},
                  {"verdicts", VerdictsJson(validation.verdicts)},
                  {"skipped_by_reason", skipped},
                  {"not_loaded", validation.not_loaded},
                  {"skipped_in_sets", validation.skipped_in_sets}};
  // Cells of a user's file may hold bytes that are no UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string RenderJson(const Explanation& explanation) {
  const reports::Figures& figures = explanation.prediction.figures;
  Json json = RowJson(explanation.row);
  json["uses"] = Json::object();
  for (std::size_t use = 0; use < figures.shares.size(); ++use) {
    json["uses"][reports::ToText(static_cast<reports::TimeUse>(use))] = figures.shares[use];
  }
  json["exposed"] = Json::object();
  for (const reports::ExposedComm& exposed : figures.exposed) {
    json["exposed"][exposed.kind] = exposed.seconds;
  }
  json["duty_relief"] = nullptr;
  if (figures.duty_relief) {
    json["duty_relief"] = {{"clock_ratio", figures.duty_relief->clock_ratio},
                           {"step_time_s", figures.duty_relief->step_time_s}};
  }
  json["kernels"] = Json::array();
  for (const KernelTime& time : explanation.kernels) {
    json["kernels"].push_back({{"segment", time.segment},
                               {"shape", time.shape},
                               {"count", time.count},
                               {"seconds", time.seconds}});
  }
  json["memory_categories"] = Json::object();
  if (!figures.memory.empty()) {
    for (const auto& [category, bytes] : figures.memory.front().categories) {
      json["memory_categories"][category] = bytes;
    }
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace isthmus::studies
