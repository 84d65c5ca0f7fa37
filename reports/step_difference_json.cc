#include <nlohmann/json.hpp>

#include "reports/internal/json_text.h"
#include "reports/internal/other_jobs.h"
#include "reports/json.h"

namespace isthmus::reports {
namespace {

using Json = nlohmann::ordered_json;

Json OrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json SideJson(const Figures& figures) {
  Json memory = nullptr;
  if (!figures.memory.empty()) {
    const MemoryFigure& worst = figures.memory.front();
    memory = {{"role", worst.role},
              {"peak_bytes", worst.peak_bytes},
              {"capacity_bytes", worst.capacity_bytes},
              {"verdict", worst.verdict}};
  }
  Json json = {{"scenario", {{"name", figures.scenario_name}, {"hash", figures.scenario_hash}}},
               {"program_hash", figures.program_hash},
               {"num_ranks", figures.num_ranks},
               {"step_time_s", figures.step_time_s},
               {"window_ps", figures.window_ps},
               {"tokens_per_s", figures.tokens_per_s},
               {"samples_per_s", figures.samples_per_s},
               {"mfu", figures.mfu},
               {"memory", std::move(memory)},
               {"engine",
                {{"ops", figures.num_ops},
                 {"folded", figures.folded},
                 {"simulated_ranks", figures.simulated_ranks}}},
               {"assumptions", figures.assumptions}};
  if (!figures.other_jobs.empty()) json["other_jobs"] = OtherJobsJson(figures.other_jobs);
  return json;
}

Json TimesJson(const DifferenceTerm& term) {
  return {{"base_ps", term.base_ps},
          {"changed_ps", term.changed_ps},
          {"difference_ps", term.difference_ps()},
          {"base_pieces", term.base_pieces},
          {"changed_pieces", term.changed_pieces}};
}

Json TermsJson(const StepDifference& difference) {
  Json json = Json::array();
  for (std::size_t index = 0; index < difference.num_named; ++index) {
    const DifferenceTerm& term = difference.terms[index];
    Json entry = {{"category", term.category},
                  {"kind", term.kind},
                  {"module", OrNull(term.module)},
                  {"op", OrNull(term.op)},
                  {"link_kind", OrNull(term.link_kind)},
                  {"link", OrNull(term.link)},
                  {"rank", term.rank}};
    entry.update(TimesJson(term));
    json.push_back(std::move(entry));
  }
  return json;
}

}  // namespace

std::string RenderJson(const StepDifference& difference) {
  Json json = Json::object();
  json["network"] = difference.network;
  json["changes"] = Json::array();
  for (const ChangedValue& change : difference.changes) {
    json["changes"].push_back(
        {{"key", change.key}, {"before", OrNull(change.before)}, {"after", change.after}});
  }
  json["base"] = SideJson(difference.base);
  json["changed"] = SideJson(difference.changed);
  json["difference_ps"] = difference.difference_ps();
  json["difference_s"] = difference.changed.step_time_s - difference.base.step_time_s;
  json["ratio"] = nullptr;
  if (difference.base.step_time_s > 0) {
    json["ratio"] = difference.changed.step_time_s / difference.base.step_time_s;
  }
  json["same_program"] = difference.same_program;
  json["terms"] = TermsJson(difference);
  const std::size_t num_others = difference.terms.size() - difference.num_named;
  json["other"] = {{"terms", num_others}};
  json["other"].update(TimesJson(difference.Other()));
  json["notes"] = difference.notes;
  return JsonText(json);
}

}  // namespace isthmus::reports
