#include "scenarios/scenario.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "cli/commands.h"
#include "cli/internal/json_text.h"
#include "cli/output.h"
#include "plan/program/program.h"

namespace isthmus::cli {

int ScenarioShow(const ScenarioOptions& options) {
  CheckOutput(options.files, options.output);
  std::string text;
  for (const std::string& file : options.files) {
    const scenarios::Scenario scenario = scenarios::LoadScenario(file, options.overrides);
    if (options.output.json) {
      text += internal::JsonText({{"name", scenario.name},
                                  {"hash", base::HashText(scenario.hash)},
                                  {"effective_yaml", scenario.effective_yaml},
                                  {"assumptions", scenario.assumptions}});
    } else {
      text += scenarios::ShowScenario(scenario);
    }
  }
  Write(options.output, text);
  return 0;
}

int ScenarioCheck(const ScenarioOptions& options) {
  CheckOutput(options.files, options.output);
  std::string text;
  nlohmann::ordered_json checked = nlohmann::ordered_json::array();
  std::vector<base::Diagnostic> mistakes;
  for (const std::string& file : options.files) {
    scenarios::Scenario scenario;
    try {
      scenario = scenarios::LoadScenario(file, options.overrides);
    } catch (const base::ScenarioError& error) {
      // The mistakes of all files are told at once.
      mistakes.insert(mistakes.end(), error.diagnostics().begin(), error.diagnostics().end());
      continue;
    }
    const std::string placement = plan::ToText(scenario.job.placement);
    const std::string hash = base::HashText(scenario.hash);
    checked.push_back({{"file", file},
                       {"name", scenario.name},
                       {"hash", hash},
                       {"placement", placement},
                       {"num_ranks", scenario.job.num_ranks}});
    text +=
        fmt::format("{}: ok ({}, {} ranks, {})\n", file, placement, scenario.job.num_ranks, hash);
  }
  if (!mistakes.empty()) throw base::ScenarioError(std::move(mistakes));
  Write(options.output, options.output.json ? internal::JsonText({{"checked", checked}}) : text);
  return 0;
}

}  // namespace isthmus::cli
