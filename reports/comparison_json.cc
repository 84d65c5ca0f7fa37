#include <nlohmann/json.hpp>

#include "reports/internal/json_text.h"
#include "reports/json.h"

namespace isthmus::reports {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kPicosecond = 1e-12;

Json TimeJson(const TwinTime& time) {
  Json json = {
      {"predicted_s", time.predicted_s}, {"measured_s", time.measured_s}, {"error", nullptr}};
  if (const auto error = time.error()) json["error"] = *error;
  return json;
}

Json SideJson(const Figures& figures) {
  return {{"scenario", {{"name", figures.scenario_name}, {"hash", figures.scenario_hash}}},
          {"machine", figures.machine},
          {"profile", figures.profile_name},
          {"profile_hash", figures.profile_hash},
          {"commit", figures.commit},
          {"seed", figures.seed},
          {"folded", figures.folded}};
}

Json StepsJson(const Comparison& comparison) {
  if (!comparison.steps) return nullptr;
  const StepStatistics& steps = *comparison.steps;
  return {{"num_steps", steps.num_steps}, {"num_warmup_steps", steps.num_warmup_steps},
          {"median_s", steps.median_s},   {"shortest_s", steps.shortest_s},
          {"longest_s", steps.longest_s}, {"spread", steps.spread}};
}

Json SharesJson(const Comparison& comparison) {
  Json json = Json::object();
  for (std::size_t use = 0; use < comparison.predicted.shares.size(); ++use) {
    json[ToText(static_cast<TimeUse>(use))] = {{"predicted", comparison.predicted.shares[use]},
                                               {"measured", comparison.measured.shares[use]}};
  }
  return json;
}

Json PathJson(const Comparison& comparison) {
  const auto term = [](const ErrorTerm& part) {
    return Json{{"predicted_ps", part.predicted_ps},
                {"measured_ps", part.measured_ps},
                {"difference_ps", part.difference_ps()}};
  };
  return {{"compute", term(comparison.path.compute)},
          {"collective", term(comparison.path.collective)},
          {"wait", term(comparison.path.wait)},
          {"host", term(comparison.path.host)},
          {"predicted_ps", comparison.predicted_window_ps},
          {"measured_ps", comparison.measured_window_ps},
          {"difference_ps", comparison.predicted_window_ps - comparison.measured_window_ps}};
}

Json RowsJson(const char* key, const std::vector<ComparedRow>& rows) {
  Json json = Json::array();
  for (const ComparedRow& row : rows) {
    Json entry = {{key, row.key}, {"events", row.num_events}};
    entry.update(TimeJson(row.time));
    entry["median_abs_error"] = row.median_abs_error;
    json.push_back(std::move(entry));
  }
  return json;
}

Json RanksJson(const Comparison& comparison) {
  Json json = Json::array();
  for (const ComparedRank& rank : comparison.ranks) {
    Json uses = Json::object();
    for (std::size_t use = 0; use < rank.uses.size(); ++use) {
      uses[ToText(static_cast<TimeUse>(use))] = TimeJson(rank.uses[use]);
    }
    json.push_back({{"rank", rank.rank}, {"role", rank.role}, {"uses", std::move(uses)}});
  }
  return json;
}

Json WorstJson(const Comparison& comparison) {
  Json json = Json::array();
  for (const ComparedOp& op : comparison.worst_ops) {
    Json entry = {{"op", op.op},
                  {"transfer", nullptr},
                  {"name", op.name},
                  {"kind", op.kind},
                  {"role", op.role},
                  {"rank", op.rank},
                  {"ranks", op.num_ranks},
                  {"microbatch", nullptr},
                  {"on_critical_path", op.on_critical_path}};
    if (op.transfer > 0) entry["transfer"] = op.transfer - 1;
    if (op.microbatch >= 0) entry["microbatch"] = op.microbatch;
    entry.update(TimeJson(op.time));
    json.push_back(std::move(entry));
  }
  return json;
}

Json UnjoinedJson(const Comparison& comparison) {
  Json json = Json::array();
  for (const LoneEvent& event : comparison.lone) {
    Json entry = {{"rank", event.rank},
                  {"op", event.op},
                  {"transfer", nullptr},
                  {"name", event.name},
                  {"only", event.predicted ? "predicted" : "measured"}};
    if (event.transfer > 0) entry["transfer"] = event.transfer - 1;
    json.push_back(std::move(entry));
  }
  return json;
}

Json ClocksJson(const Comparison& comparison) {
  Json ranks = Json::array();
  for (std::size_t rank = 0; rank < comparison.skew.clocks.size(); ++rank) {
    const traces::RankClock& clock = comparison.skew.clocks[rank];
    ranks.push_back({{"rank", rank},
                     {"offset_s", clock.offset_ps * kPicosecond},
                     {"drift", clock.drift},
                     {"reference_rank", clock.reference}});
  }
  return {{"corrected", comparison.skew.has_offsets},
          {"has_drift", comparison.skew.has_drift},
          {"samples", comparison.skew.num_samples},
          {"residual_s", comparison.skew.residual_ps * kPicosecond},
          {"ranks", std::move(ranks)}};
}

Json ProblemsJson(const Comparison& comparison) {
  Json json = Json::array();
  for (const traces::MeasuredProblem& problem : comparison.problems) {
    json.push_back({{"kind", traces::ToText(problem.kind)}, {"text", problem.text}});
  }
  return json;
}

}  // namespace

std::string RenderJson(const Comparison& comparison) {
  Json json = Json::object();
  json["program_hash"] = comparison.predicted.program_hash;
  json["placement"] = comparison.predicted.placement;
  json["num_ranks"] = comparison.predicted.num_ranks;
  json["predicted"] = SideJson(comparison.predicted);
  json["measured"] = SideJson(comparison.measured);
  json["measured"]["software"] = comparison.software;
  json["step_time"] = TimeJson(comparison.step_time);
  json["measured_steps"] = StepsJson(comparison);
  json["step_error_along_critical_path"] = PathJson(comparison);
  json["shares"] = SharesJson(comparison);
  json["by_category"] = RowsJson("category", comparison.categories);
  json["by_kind"] = RowsJson("kind", comparison.kinds);
  json["by_module"] = RowsJson("module", comparison.modules);
  json["by_op"] = RowsJson("op", comparison.ops);
  json["by_rank"] = RanksJson(comparison);
  json["worst_ops"] = WorstJson(comparison);
  json["joined_events"] = comparison.num_joined;
  json["unjoined_events"] = UnjoinedJson(comparison);
  json["clocks"] = ClocksJson(comparison);
  json["problems"] = ProblemsJson(comparison);
  json["notes"] = comparison.notes;
  return JsonText(json);
}

}  // namespace isthmus::reports
