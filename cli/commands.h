#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/run_options.h"

/// The verbs of `isthmus`, each from its options to an exit code: 0 ok, 1 the answer is no. Errors
/// are exceptions; main() prints them.
namespace isthmus::cli {

/// Where a verb's answer goes, and in which form.
struct Output {
  bool json = false;
  std::optional<std::string> file;  // -o: instead of standard output, whole or not at all
  bool verbose = false;
};

struct SimulateOptions {
  std::string scenario;
  std::vector<std::string> overrides;
  std::string network = "nccl";
  std::string fold = "auto";
  bool expanded = false;
  bool timing = false;
  bool band = false;
  std::string links;  // how many of the hottest links; empty: no report of links
  std::vector<std::string> traces;
  Output output;
};
int Simulate(const SimulateOptions& options);

struct WhatIfOptions {
  std::string scenario;
  std::vector<std::string> overrides;
  std::vector<std::string> changes;
  std::string network = "nccl";
  Output output;
};
int WhatIf(const WhatIfOptions& options);

struct PlanOptions {
  std::string scenario;
  std::vector<std::string> overrides;
  std::optional<int> rank;
  bool boundaries = false;
  Output output;
};
int Plan(const PlanOptions& options);

struct TopologyOptions {
  std::string cluster;
  std::optional<int> nodes;
  std::optional<int> from;
  std::optional<int> to;
  std::string fabric;  ///< print of ibnetdiscover; empty: the cluster's own
  std::string nics;    ///< pattern; empty: all
  bool dot = false;
  std::string export_to;  ///< empty: no file
  std::string picture;    ///< empty: no file
  Output output;
};
int Topology(const TopologyOptions& options);

struct ScenarioOptions {
  std::vector<std::string> files;
  std::vector<std::string> overrides;
  Output output;
};
int ScenarioShow(const ScenarioOptions& options);
int ScenarioCheck(const ScenarioOptions& options);

struct ReportOptions {
  std::string trace;
  std::vector<std::string> export_to;
  bool links = false;  // to say where they are told
  Output output;
};
int Report(const ReportOptions& options);

struct RunCommandOptions {
  RunOptions run;
  std::optional<std::uint16_t> port;
};
int Run(const RunCommandOptions& options);

struct CompareOptions {
  std::string predicted;
  std::string measured;
  std::optional<std::string> perfetto;
  int num_worst_ops = 10;
  Output output;
};
int Compare(const CompareOptions& options);

struct CalibrateOptions {
  std::optional<std::string> profile;  // the file to write
  bool quick = false;
  std::string device = "cpu";
};
int Calibrate(const CalibrateOptions& options);

struct ValidateOptions {
  std::vector<std::string> files;
  std::string filter;
  std::optional<std::string> sets;
  std::optional<std::string> folder;
  std::string network = "nccl";
  std::optional<std::string> explain;  // the id of one row
  Output output;
};
int Validate(const ValidateOptions& options);

}  // namespace isthmus::cli
