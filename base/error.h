#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::base {

/// Something the user can put right; what() is the whole text, ready to print.
///
/// The program's edge (cli) prints it and ends with exit code 2. Our own mistakes are not errors:
/// see ISTHMUS_CHECK.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One mistake in a file of the user.
struct Diagnostic {
  std::string file;
  int line = 0;    ///< From 1; 0 when the place is unknown (then column doesn't count).
  int column = 0;  ///< From 1; 0 when unknown.
  std::string message;
  std::string hint;  ///< What to do about it; may be empty.
};

/// `file:line:column: error: message`, and on a second line `  hint: …` when there is one.
std::string FormatDiagnostic(const Diagnostic& diagnostic);

/// All mistakes found in a scenario. what() lists them in the order given, one after the other,
/// with no closing line break.
class ScenarioError : public Error {
 public:
  /// Needs at least one diagnostic.
  explicit ScenarioError(std::vector<Diagnostic> diagnostics);

  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  std::vector<Diagnostic> diagnostics_;
};

/// The world failed where the user asked for nothing wrong: a write that didn't succeed.
///
/// Exit code 3. (A file that the user named and that can't be read is a plain Error.)
class IoError : public Error {
 public:
  using Error::Error;
  /// `cannot <action> <path>: <text of the system error>`.
  IoError(std::string_view action, std::string_view path, int error_number);
};

}  // namespace isthmus::base
