#include "base/error.h"

#include <system_error>

#include <fmt/format.h>

#include "base/check.h"

namespace isthmus::base {
namespace {

std::string FormatAll(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) {
    if (!text.empty()) text += '\n';
    text += FormatDiagnostic(diagnostic);
  }
  return text;
}

}  // namespace

std::string FormatDiagnostic(const Diagnostic& diagnostic) {
  std::string text = diagnostic.file;
  if (diagnostic.line > 0) text += fmt::format(":{}", diagnostic.line);
  if (diagnostic.line > 0 && diagnostic.column > 0) text += fmt::format(":{}", diagnostic.column);
  if (!text.empty()) text += ": ";
  text += "error: " + diagnostic.message;
  if (!diagnostic.hint.empty()) text += "\n  hint: " + diagnostic.hint;
  return text;
}

ScenarioError::ScenarioError(std::vector<Diagnostic> diagnostics)
    : Error(FormatAll(diagnostics)), diagnostics_(std::move(diagnostics)) {
  ISTHMUS_CHECK(!diagnostics_.empty(), "a ScenarioError without a diagnostic");
}

IoError::IoError(std::string_view action, std::string_view path, int error_number)
    : Error(fmt::format("cannot {} {}: {}", action, path,
                        std::generic_category().message(error_number))) {}

}  // namespace isthmus::base
