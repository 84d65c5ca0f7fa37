#include <csignal>
#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/build_info.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"

namespace isthmus::cli {
namespace {

void AddOutput(CLI::App& verb, Output& output) {
  verb.add_flag("--json", output.json, "One JSON object on standard output, nothing else there");
  verb.add_option("-o,--output", output.file, "Write to FILE instead of standard output")
      ->type_name("FILE");
}

void AddOverrides(CLI::App& verb, std::vector<std::string>& overrides) {
  verb.add_option("--set", overrides, "Override a value: --set workload.global_batch=512")
      ->type_name("KEY=VALUE");
}

/// A verb, its options, and what it runs. Options live as long as the parser.
struct Verbs {
  SimulateOptions simulate;
  WhatIfOptions what_if;
  PlanOptions plan;
  TopologyOptions topology;
  ScenarioOptions scenario;
  ReportOptions report;
  CompareOptions compare;
  ValidateOptions validate;
  RunCommandOptions run_command;
  CalibrateOptions calibrate;
  std::function<int()> run;
};

void AddSimulate(CLI::App& app, Verbs& verbs) {
  SimulateOptions& options = verbs.simulate;
  CLI::App& verb = *app.add_subcommand(
      "simulate", "Predict a step: time, FLOPS, memory, bubbles, exposed communication");
  verb.add_option("SCENARIO", options.scenario, "A scenario file")->required();
  AddOverrides(verb, options.overrides);
  verb.add_option("--network", options.network, "Network model: nccl or flow")
      ->capture_default_str();
  verb.add_option("--fold", options.fold, "Simulate ranks that do the same once: auto or off")
      ->capture_default_str();
  verb.add_flag("--expand", options.expanded,
                "Simulate the pieces of every block, not one interval");
  verb.add_option(
          "--trace", options.traces,
          "Write the trace: .pftrace (Perfetto), .json (Chrome), .isthmus (ours), .jsonl, .csv")
      ->type_name("FILE");
  verb.add_flag("--timing", options.timing,
                "Also report wall time and peak memory of this program");
  verb.add_flag("--band", options.band,
                "Also estimate the 80 % band of the step time, by simulating variations");
  verb.add_flag("--links{10}", options.links,
                "Also report links (with --network flow): traffic, use over time, who slows whom; "
                "--links=N names the N hottest");
  verb.add_flag("-v,--verbose", options.output.verbose,
                "All assumptions, times by role, longest path segments");
  AddOutput(verb, options.output);
  verb.footer(
      "Examples:\n"
      "  isthmus simulate scenarios/quickstart.yaml\n"
      "  isthmus simulate scenarios/quickstart.yaml --set workload.global_batch=64 --json\n"
      "  isthmus simulate scenarios/quickstart.yaml --trace step.pftrace   # open in "
      "ui.perfetto.dev\n"
      "Exit code 1: some rank does not fit into memory.");
  verb.callback([&verbs] { verbs.run = [&verbs] { return Simulate(verbs.simulate); }; });
}

void AddWhatIf(CLI::App& app, Verbs& verbs) {
  WhatIfOptions& options = verbs.what_if;
  CLI::App& verb = *app.add_subcommand(
      "whatif", "What a change does to the step, taken apart along the critical path");
  verb.add_option("SCENARIO", options.scenario, "A scenario file")->required();
  verb.add_option("--change", options.changes,
                  "What to change, all together: a value, or 2x, +10%, -20% of what is there")
      ->type_name("KEY=VALUE");
  AddOverrides(verb, options.overrides);
  verb.add_option("--network", options.network, "Network model: nccl or flow")
      ->capture_default_str();
  verb.add_flag("-v,--verbose", options.output.verbose, "Every term of the difference");
  AddOutput(verb, options.output);
  verb.footer(
      "Examples:\n"
      "  isthmus whatif scenarios/quickstart.yaml --change cluster.nvlink.bandwidth=2x\n"
      "  isthmus whatif scenarios/quickstart.yaml --change 'cluster.slow_gpus=[{gpu: 3, "
      "speed_factor: 0.8}]'\n"
      "docs/whatif.md has one for each kind of question.\n"
      "Exit code 1: some rank of the changed scenario does not fit into memory.");
  verb.callback([&verbs] { verbs.run = [&verbs] { return WhatIf(verbs.what_if); }; });
}

void AddPlan(CLI::App& app, Verbs& verbs) {
  PlanOptions& options = verbs.plan;
  CLI::App& verb =
      *app.add_subcommand("plan", "Print the program of a scenario: roles, ops, boundaries");
  verb.add_option("SCENARIO", options.scenario, "A scenario file")->required();
  AddOverrides(verb, options.overrides);
  verb.add_option("--rank", options.rank, "Print the ops of one rank")->type_name("R");
  verb.add_flag("--boundaries", options.boundaries, "Print the boundary tables only");
  AddOutput(verb, options.output);
  verb.footer(
      "Examples:\n"
      "  isthmus plan scenarios/quickstart.yaml\n"
      "  isthmus plan scenarios/quickstart.yaml --rank 3\n"
      "Exit code 1: the validator found a problem.");
  verb.callback([&verbs] { verbs.run = [&verbs] { return Plan(verbs.plan); }; });
}

void AddTopology(CLI::App& app, Verbs& verbs) {
  TopologyOptions& options = verbs.topology;
  CLI::App& verb = *app.add_subcommand("topology", "Print a cluster, or what a transfer crosses");
  verb.add_option("CLUSTER", options.cluster, "A cluster by name (h100-dgx), or its file")
      ->required();
  verb.add_option("--nodes", options.nodes,
                  "Nodes of a cluster of one node group; what it says itself, else 4, if left out")
      ->check(CLI::Range(1, 1 << 20));
  verb.add_option("--from", options.from, "Sending rank")->type_name("R");
  verb.add_option("--to", options.to, "Receiving rank")->type_name("R");
  CLI::Option* const fabric =
      verb.add_option("--fabric", options.fabric,
                      "The InfiniBand fabric that ibnetdiscover printed, instead of the cluster's")
          ->type_name("FILE");
  verb.add_option("--nics", options.nics,
                  "Which of its adapters are NICs of nodes, as a shell pattern for \"host device\"")
      ->type_name("PATTERN")
      ->needs(fabric);
  verb.add_flag("--dot", options.dot, "The graph in Graphviz' DOT language");
  verb.add_option("--export", options.export_to, "Write the cluster as a file that can be edited")
      ->type_name("FILE.yaml");
  verb.add_option("--picture", options.picture, "Draw the cluster, equal parts once")
      ->type_name("FILE.svg");
  AddOutput(verb, options.output);
  verb.footer(
      "Examples:\n"
      "  isthmus topology h100-dgx --nodes 4\n"
      "  isthmus topology h100-dgx --nodes 4 --from 3 --to 20\n"
      "  isthmus topology gb200-nvl72 --nodes 36 --picture nvl72.svg --export mine.yaml\n"
      "  isthmus topology h100-dgx --fabric fabric.txt --nics 'gpu-* mlx5_*' --export mine.yaml");
  verb.callback([&verbs] { verbs.run = [&verbs] { return Topology(verbs.topology); }; });
}

void AddScenario(CLI::App& app, Verbs& verbs) {
  ScenarioOptions& options = verbs.scenario;
  CLI::App& verb = *app.add_subcommand("scenario", "Show the effective scenario, or check files");
  verb.require_subcommand(1);
  verb.footer(
      "Examples:\n"
      "  isthmus scenario show scenarios/quickstart.yaml\n"
      "  isthmus scenario check scenarios/examples/*.yaml");
  const auto add = [&](const char* name, const char* text, int (*run)(const ScenarioOptions&)) {
    CLI::App& part = *verb.add_subcommand(name, text);
    part.add_option("FILE", options.files, "Scenario files")->required();
    AddOverrides(part, options.overrides);
    AddOutput(part, options.output);
    part.callback([&verbs, run] { verbs.run = [&verbs, run] { return run(verbs.scenario); }; });
  };
  add("show", "The effective scenario with the origin of every value", ScenarioShow);
  add("check", "Load files and report every mistake", ScenarioCheck);
}

void AddReport(CLI::App& app, Verbs& verbs) {
  ReportOptions& options = verbs.report;
  CLI::App& verb = *app.add_subcommand("report", "The report of a stored trace");
  verb.add_option("TRACE", options.trace, "A trace in our format (.isthmus)")->required();
  verb.add_option("--export", options.export_to,
                  "Also write the trace as .pftrace, .json, .jsonl or .csv")
      ->type_name("FILE");
  verb.add_flag("--links", options.links)
      ->group("");  // asked for, never there: Report() says where
  verb.add_flag("-v,--verbose", options.output.verbose,
                "All assumptions, times by role, longest path segments");
  AddOutput(verb, options.output);
  verb.footer(
      "Examples:\n"
      "  isthmus simulate scenarios/quickstart.yaml --trace step.isthmus\n"
      "  isthmus report step.isthmus --export step.pftrace");
  verb.callback([&verbs] { verbs.run = [&verbs] { return Report(verbs.report); }; });
}

void AddCompare(CLI::App& app, Verbs& verbs) {
  CompareOptions& options = verbs.compare;
  CLI::App& verb = *app.add_subcommand(
      "compare",
      "A predicted against a measured trace of the same program: errors and their causes");
  verb.add_option("PREDICTED", options.predicted, "A trace of simulate (.isthmus)")->required();
  verb.add_option("MEASURED", options.measured, "A trace of run (.isthmus)")->required();
  verb.add_option("--perfetto", options.perfetto, "Also write both side by side as .pftrace")
      ->type_name("FILE.pftrace");
  verb.add_option("--worst", options.num_worst_ops, "How many of the worst ops to name")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 20));
  verb.add_flag("-v,--verbose", options.output.verbose,
                "All ranks, categories, modules, ops by name, and problems");
  AddOutput(verb, options.output);
  verb.footer(
      "Examples:\n"
      "  isthmus compare predicted.isthmus measured.isthmus\n"
      "  isthmus compare predicted.isthmus measured.isthmus --perfetto both.pftrace\n"
      "Exit code 2: the traces are of different programs, or one can't be read.");
  verb.callback([&verbs] { verbs.run = [&verbs] { return Compare(verbs.compare); }; });
}

void AddValidate(CLI::App& app, Verbs& verbs) {
  ValidateOptions& options = verbs.validate;
  CLI::App& verb =
      *app.add_subcommand("validate", "Predict published or own runs and print the error table");
  verb.add_option("RUNS", options.files,
                  "CSV files of runs (columns are told apart by their header)")
      ->required();
  verb.add_option("--filter", options.filter, "Rows to take, e.g. 'gpu=H100,confidence=A'")
      ->type_name("COLUMN=VALUE,…");
  verb.add_option("--sets", options.sets, "CSV with columns set, row_id: groups of rows")
      ->type_name("SETS.csv");
  verb.add_option("--out", options.folder,
                  "Also write tables (Markdown, CSV) and scenarios into a folder")
      ->type_name("DIR");
  verb.add_option("--network", options.network, "Network model: nccl or flow")
      ->capture_default_str();
  verb.add_option("--explain", options.explain, "Take one row apart: where its step goes")
      ->type_name("ROW_ID");
  AddOutput(verb, options.output);
  verb.footer(
      "Examples:\n"
      "  isthmus validate runs.csv\n"
      "  isthmus validate runs.csv --explain T1192\n"
      "  isthmus validate runs.csv --filter 'gpu=H100,precision=BF16' --json\n"
      "Exit code 1: a row of a set was skipped.");
  verb.callback([&verbs] { verbs.run = [&verbs] { return Validate(verbs.validate); }; });
}

void AddRun(CLI::App& app, Verbs& verbs) {
  RunCommandOptions& options = verbs.run_command;
  CLI::App& verb = *app.add_subcommand("run", "Train for real: ranks as processes of this machine");
  AddRunOptions(verb, options.run);
  verb.add_option("--port", options.port, "Where ranks meet; absent: a free port")
      ->type_name("P")
      ->check(CLI::Range(1, 65535));
  verb.footer(
      "Examples:\n"
      "  isthmus run SCENARIO --steps 100\n"
      "  isthmus run SCENARIO --trace measured.isthmus --checkpoint out/checkpoint\n"
      "Many machines: docs/cluster.md.");
  verb.callback([&verbs] { verbs.run = [&verbs] { return Run(verbs.run_command); }; });
}

void AddCalibrate(CLI::App& app, Verbs& verbs) {
  CalibrateOptions& options = verbs.calibrate;
  CLI::App& verb = *app.add_subcommand(
      "calibrate", "Measure what kernels and messages take on this machine: a profile");
  verb.add_option("-o,--output", options.profile,
                  "The profile to write; else cpu-host.yaml or single-gpu.yaml")
      ->type_name("FILE");
  verb.add_flag("--quick", options.quick, "A coarser grid and fewer samples: a third of the time");
  verb.add_option("--device", options.device, "What to measure: cpu or gpu")->capture_default_str();
  verb.footer(
      "Examples:\n"
      "  isthmus calibrate -o out/this-machine.yaml\n"
      "  isthmus simulate SCENARIO --set cluster=cpu-host --set profile=out/this-machine.yaml\n"
      "Nothing else should run meanwhile. docs/calibrate.md says what is measured, and how.");
  verb.callback([&verbs] { verbs.run = [&verbs] { return Calibrate(verbs.calibrate); }; });
}

/// Names a verb or option that doesn't exist before the parser complains of what is missing because
/// of it.
void CheckNames(const CLI::App& app, int argc, char** argv) {
  const CLI::App* verb = &app;
  std::string spelled = app.get_name();
  for (int index = 1; index < argc; ++index) {
    const std::string argument = argv[index];
    const bool takes_verb = !verb->get_subcommands({}).empty();
    if (argument.rfind("--", 0) == 0 && argument.size() > 2) {
      const std::string name = argument.substr(0, argument.find('='));
      if (verb->get_option_no_throw(name) != nullptr) continue;
      throw base::Error(fmt::format("{}: no such option; '{} --help' lists them", name, spelled));
    }
    if (!takes_verb || argument.rfind('-', 0) == 0) continue;
    std::vector<std::string> names;
    for (const CLI::App* known : verb->get_subcommands({})) names.push_back(known->get_name());
    const CLI::App* found = nullptr;
    for (const CLI::App* known : verb->get_subcommands({}))
      found = known->get_name() == argument ? known : found;
    if (found == nullptr) {
      const std::optional<std::string> meant = base::ClosestName(argument, names);
      throw base::Error(
          fmt::format("{}: no such verb; allowed: {}{}", argument, fmt::join(names, ", "),
                      meant ? fmt::format("\n  hint: did you mean {}?", *meant) : ""));
    }
    verb = found;
    spelled += " " + argument;
  }
}

int Main(int argc, char** argv) {
  CLI::App app{"Isthmus: simulator and digital twin of distributed training for multimodal LLMs",
               "isthmus"};
  Verbs verbs;
  app.require_subcommand(1);
  app.set_version_flag("--version", fmt::format("isthmus {} ({})", BuildVersion(), BuildCommit()));
  app.footer(
      "'isthmus VERB --help' explains a verb. Exit codes: 0 ok, 1 the answer is no, 2 a mistake in "
      "what was\n"
      "asked, 3 the world failed.\n"
      "Example: isthmus simulate scenarios/quickstart.yaml");
  AddSimulate(app, verbs);
  AddWhatIf(app, verbs);
  AddPlan(app, verbs);
  AddTopology(app, verbs);
  AddScenario(app, verbs);
  AddValidate(app, verbs);
  AddReport(app, verbs);
  AddRun(app, verbs);
  AddCompare(app, verbs);
  AddCalibrate(app, verbs);
  CheckNames(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    throw base::Error(
        fmt::format("{}\n  hint: 'isthmus --help' and 'isthmus VERB --help' list what "
                    "is allowed",
                    error.what()));
  }
  CheckValues(app);
  return verbs.run();
}

}  // namespace
}  // namespace isthmus::cli

int main(int argc, char** argv) {
  isthmus::cli::IgnoreLostReaders();
  // Texts of files and of ranks bring their place and the word themselves.
  const auto report = [](const std::string& text) {
    const bool is_complete = text.find("error: ") != std::string::npos;
    isthmus::cli::Tell(fmt::format("{}{}\n", is_complete ? "" : "isthmus: error: ", text));
  };
  try {
    return isthmus::cli::Main(argc, argv);
  } catch (const isthmus::cli::Interrupted& interrupted) {
    isthmus::cli::Tell(fmt::format("{}\n", interrupted.what()));
    static_cast<void>(std::raise(interrupted.signal()));
    return isthmus::cli::kWorldFailure;  // where the signal is blocked
  } catch (const isthmus::base::IoError& error) {
    report(error.what());
    return isthmus::cli::kWorldFailure;
  } catch (const isthmus::base::Error& error) {
    report(error.what());
    return isthmus::cli::kUserError;
  } catch (const std::bad_alloc&) {
    report("out of memory");
    return isthmus::cli::kWorldFailure;
  } catch (const std::exception& error) {
    report(error.what());
    return isthmus::cli::kWorldFailure;
  }
}
