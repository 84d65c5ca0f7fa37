#include "scenarios/write_profile.h"

#include <string_view>

#include <fmt/format.h>

namespace isthmus::scenarios {
namespace {

// A double-quoted YAML scalar.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char symbol : text) {
    if (symbol == '"' || symbol == '\\') quoted += '\\';
    quoted += symbol == '\n' || symbol == '\t' ? ' ' : symbol;
  }
  return quoted + '"';
}

std::string Line(std::string_view key, std::string_view text) {
  return text.empty() ? std::string() : fmt::format("  {}: {}\n", key, Quoted(text));
}

std::string WriteParameter(const std::string& key, const profiles::Parameter& parameter) {
  std::string text = fmt::format("  {}: {{value: {}, unit: {}, mark: {}", key, parameter.value,
                                 Quoted(parameter.unit), profiles::MarkName(parameter.mark));
  if (parameter.strict) text += fmt::format(", strict: {}", *parameter.strict);
  if (parameter.residual) {
    const profiles::Residual& residual = *parameter.residual;
    text += fmt::format(", residual: {{median: {}, p90: {}, rows: {}}}", residual.median,
                        residual.p90, residual.num_rows);
  }
  return text + fmt::format(", source: {}}}\n", Quoted(parameter.source));
}

}  // namespace

std::string WriteProfile(const profiles::Profile& profile, const ProfileHead& head) {
  std::string text = "profile:\n";
  text += Line("name", profile.name()) + Line("date", profile.date());
  text += Line("command", head.command) + Line("machine", head.machine);
  text += Line("versions", head.versions) + Line("commit", head.commit) + "parameters:\n";
  for (const auto& [key, parameter] : profile.parameters()) text += WriteParameter(key, parameter);
  return text;
}

}  // namespace isthmus::scenarios
