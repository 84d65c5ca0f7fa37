#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "backend/launch/launcher.h"
#include "base/error.h"
#include "base/file_io.h"
#include "cli/build_info.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/machine.h"
#include "cli/output.h"
#include "cli/rank_program.h"
#include "scenarios/write_profile.h"
#include "sim/calibrate/gpu_fit.h"
#include "sim/calibrate/host_fit.h"
#include "traces/measured_row.h"

namespace isthmus::cli {
namespace {

namespace fs = std::filesystem;
using traces::MeasuredRow;

// So many that ranks can outnumber the cores of a small machine, and no more than a fit needs.
constexpr int kFewestRanks = 4;
constexpr int kMostRanks = 8;
constexpr std::int64_t kMostBytes = 64 << 20;

int NumRanks(const CalibrateOptions& options) {
  if (options.device == "gpu") return kFewestRanks;  // on one GPU
  const int wanted = std::clamp(2 * NumCores(), kFewestRanks, kMostRanks);
  return wanted >= kMostRanks ? kMostRanks : kFewestRanks;  // groups of 2, 4 and 8
}

std::string Today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

std::string CpuName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

/// A folder of its own, gone with it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "isthmus-calibrate-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw base::IoError("make", pattern, errno);
    path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

[[noreturn]] void ThrowFailure(const backend::RankFailure& failure) {
  std::string text = fmt::format("isthmus calibrate: error: {}", backend::Describe(failure));
  if (!failure.last_lines.empty()) text += "\n  its last lines:";
  for (const std::string& line : failure.last_lines) text += "\n    " + line;
  throw base::IoError(text);
}

void CheckDevice(const std::string& device) {
  if (device == "cpu" || device == "gpu") return;
  throw base::Error(fmt::format("--device {}: not a choice; allowed: cpu, gpu", device));
}

std::vector<MeasuredRow> Measure(const CalibrateOptions& options) {
  const TemporaryFolder folder;
  const std::string rows = (folder.path() / "rows.csv").string();
  backend::LaunchOptions launch;
  launch.program = FindRankProgram(options.device == "gpu").string();
  launch.arguments = {"--measure", rows};
  if (options.quick) launch.arguments.emplace_back("--quick");
  if (options.device == "gpu") launch.arguments.emplace_back("--gpu");
  launch.num_ranks = NumRanks(options);
  launch.on_line = [](const backend::RankLine& line) {
    Tell(fmt::format("rank {}: {}\n", line.rank, line.text));
  };
  const backend::LaunchOutcome outcome = backend::Launch(launch);
  if (outcome.first_failure) ThrowFailure(*outcome.first_failure);
  if (outcome.interrupt) {
    throw Interrupted("isthmus calibrate: interrupted; all ranks have ended", *outcome.interrupt);
  }
  return traces::ParseMeasuredRows(base::ReadFile(rows, base::Bytes(kMostBytes)), rows);
}

std::string VersionsOf(const std::vector<MeasuredRow>& rows) {
  for (const MeasuredRow& row : rows) {
    if (row.table == "versions") return row.point;
  }
  return {};
}

// The tables that were judged by held-out rows, and how noisy the samples were.
std::string Summary(const profiles::Profile& profile, const std::vector<MeasuredRow>& rows) {
  std::string text = fmt::format("{:<36} {:>7} {:>7} {:>6}\n", "error on shapes held out", "median",
                                 "p90", "shapes");
  for (const auto& [key, parameter] : profile.parameters()) {
    if (!key.ends_with(".check")) continue;
    text += fmt::format("  {:<34} {:>5.1f} % {:>5.1f} % {:>6}\n",
                        key.substr(0, key.size() - std::string_view(".check").size()),
                        100 * parameter.residual->median, 100 * parameter.residual->p90,
                        parameter.residual->num_rows);
  }
  std::vector<double> spreads;
  for (const MeasuredRow& row : rows) spreads.push_back(row.spread);
  std::ranges::sort(spreads);
  text += fmt::format("spread of the samples of a figure: median {:.1f} %, p90 {:.1f} %\n",
                      100 * spreads[spreads.size() / 2], 100 * spreads[spreads.size() * 9 / 10]);
  return text;
}

void Announce(const CalibrateOptions& options) {
  const int num_ranks = NumRanks(options);
  if (options.device == "gpu") {
    Tell(fmt::format("measuring the first GPU of this machine with {} ranks; about {} s\n",
                     num_ranks, options.quick ? 60 : 150));
    return;
  }
  Tell(fmt::format("measuring this machine with {} ranks on {} cores; about {} s\n", num_ranks,
                   NumCores(), options.quick ? 20 : 60));
}

profiles::Profile Fit(const CalibrateOptions& options, const std::vector<MeasuredRow>& rows) {
  if (options.device == "gpu") return sim::FitGpu(rows, {.date = Today(), .cores = NumCores()});
  return sim::FitHost(
      rows, {.date = Today(), .cores = NumCores(), .memory_bytes = MachineMemory().value()});
}

}  // namespace

int Calibrate(const CalibrateOptions& options) {
  CheckDevice(options.device);
  const std::string cluster = options.device == "gpu" ? "single-gpu" : "cpu-host";
  const std::string path = options.profile.value_or(cluster + ".yaml");
  base::AtomicFile file(path);  // a place that can't be written fails before anything is measured
  Announce(options);
  const std::vector<MeasuredRow> rows = Measure(options);
  const profiles::Profile profile = Fit(options, rows);
  const scenarios::ProfileHead head{
      .command =
          fmt::format("isthmus calibrate{}{}", options.device == "gpu" ? " --device gpu" : "",
                      options.quick ? " --quick" : ""),
      .machine = fmt::format("{}, {} cores, {:.1f} GiB", CpuName(), NumCores(),
                             static_cast<double>(MachineMemory().value()) / (1 << 30)),
      .versions = VersionsOf(rows),
      .commit = std::string(BuildCommit())};
  file.Write(scenarios::WriteProfile(profile, head));
  file.Commit();
  Write({}, fmt::format("{}profile {} has {} parameters; scenarios name it: `cluster: {}`, "
                        "`profile: {}`\n",
                        Summary(profile, rows), path, profile.parameters().size(), cluster, path));
  return 0;
}

}  // namespace isthmus::cli
