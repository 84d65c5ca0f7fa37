#include "cli/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file_io.h"
#include "reports/json.h"
#include "reports/text.h"
#include "traces/trace_file.h"

namespace isthmus::cli {
namespace {

std::filesystem::path Resolved(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path resolved = std::filesystem::weakly_canonical(path, failed);
  return failed ? std::filesystem::path(path) : resolved;
}

bool WantsColor(const Output& output) {
  return !output.file && isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
}

// Columns of the terminal, 100 where there is none.
int TerminalWidth() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 100;
  return std::clamp<int>(size.ws_col, 60, 140);
}

// An answer in the form that was asked for.
template <typename Answer>
std::string Render(const Output& output, const Answer& answer) {
  if (output.json) return reports::RenderJson(answer);
  return reports::RenderText(
      answer, {.color = WantsColor(output), .width = TerminalWidth(), .verbose = output.verbose});
}

}  // namespace

void CheckFiles(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
  std::set<std::filesystem::path> read;
  std::set<std::filesystem::path> written;
  for (const std::string& input : inputs) read.insert(Resolved(input));
  for (const std::string& output : outputs) {
    const std::filesystem::path path = Resolved(output);
    if (read.contains(path))
      throw base::Error(fmt::format("{}: would overwrite what is read; name another file", output));
    if (!written.insert(path).second)
      throw base::Error(fmt::format("{}: named twice; outputs need files of their own", output));
  }
}

void CheckOutput(const std::vector<std::string>& inputs, const Output& output) {
  if (output.file) CheckFiles(inputs, {*output.file});
}

void IgnoreLostReaders() { static_cast<void>(std::signal(SIGPIPE, SIG_IGN)); }

void Write(const Output& output, const std::string& text) {
  if (output.file) {
    base::AtomicFile file(*output.file);
    file.Write(text);
    file.Commit();
    return;
  }
  const std::size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written == text.size() && std::fflush(stdout) == 0) return;
  if (errno == EPIPE) {
    static_cast<void>(std::signal(SIGPIPE, SIG_DFL));
    static_cast<void>(std::raise(SIGPIPE));
  }
  throw base::IoError("cannot write to standard output");
}

void Tell(const std::string& text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
}

void WriteFigures(const Output& output, const reports::Figures& figures) {
  Write(output, Render(output, figures));
}

void WriteComparison(const Output& output, const reports::Comparison& comparison) {
  Write(output, Render(output, comparison));
}

void WriteDifference(const Output& output, const reports::StepDifference& difference) {
  Write(output, Render(output, difference));
}

TraceOutputs::TraceOutputs(const std::vector<std::string>& files,
                           std::vector<traces::TraceSink*> sinks) {
  sinks.push_back(&analysis_);
  for (const std::string& path : files) {
    files_.push_back(traces::OpenTraceFile(path));
    sinks.push_back(files_.back().get());
  }
  tee_ = std::make_unique<traces::TeeSink>(sinks);
}

}  // namespace isthmus::cli
