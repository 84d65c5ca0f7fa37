// `isthmus compare`: a prediction of the program against a run of the fake backend, and what is
// refused.

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "backend/fake/execute.h"
#include "plan/program/program.h"
#include "scenarios/scenario.h"
#include "tests/support/test_folder.h"
#include "tests/support/twin_traces.h"
#include "traces/recorder.h"
#include "traces/trace_file.h"

namespace isthmus::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kScenario = "scenarios/quickstart.yaml";

struct Answer {
  int code = 0;
  std::string out;
  std::string err;
};

std::string TextOf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Answer Isthmus(const std::string& arguments) {
  const std::string out = (TestFolder() / "out.txt").string();
  const std::string err = (TestFolder() / "err.txt").string();
  const std::string command = fmt::format("cd '{}' && '{}' {} > '{}' 2> '{}' < /dev/null",
                                          ISTHMUS_SOURCE_DIR, ISTHMUS_BINARY, arguments, out, err);
  const int status = std::system(command.c_str());
  return {WEXITSTATUS(status), TextOf(out), TextOf(err)};
}

std::string PathOf(const char* name) { return (TestFolder() / name).string(); }

traces::Trace Measure(const std::vector<std::string>& overrides = {}) {
  const scenarios::Scenario scenario =
      scenarios::LoadScenario(std::filesystem::path(ISTHMUS_SOURCE_DIR) / kScenario, overrides);
  traces::Trace trace = MeasureOnFake(plan::Build(scenario.job));
  trace.header.scenario_name = scenario.name;
  trace.header.measurement = {.step_times_ps = {3'000'000'000, trace.trailer.end_ps},
                              .num_warmup_steps = 1,
                              .recorded_step = 1,
                              .software = {{"torch", "2.11.0"}}};
  return trace;
}

void Store(const traces::Trace& trace, const std::string& path) {
  const auto file = traces::OpenTraceFile(path);
  traces::Replay(trace, *file);
}

class CompareTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(Isthmus(fmt::format("simulate {} --trace {}", kScenario, PathOf("p.isthmus"))).code,
              0);
    Store(Measure(), PathOf("m.isthmus"));
  }
  static std::string Both() { return PathOf("p.isthmus") + " " + PathOf("m.isthmus"); }
};

TEST_F(CompareTest, JsonIsOneObjectWithTheKeysOfTheContract) {
  const Answer answer = Isthmus("compare " + Both() + " --json");
  ASSERT_EQ(answer.code, 0) << answer.err;
  const nlohmann::json json = nlohmann::json::parse(answer.out);
  for (const char* key :
       {"program_hash",    "placement",   "num_ranks",      "predicted",
        "measured",        "step_time",   "measured_steps", "step_error_along_critical_path",
        "shares",          "by_category", "by_kind",        "by_module",
        "by_op",           "by_rank",     "worst_ops",      "joined_events",
        "unjoined_events", "clocks",      "problems",       "notes"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["measured"]["software"]["torch"], "2.11.0");
  EXPECT_EQ(json["measured_steps"]["num_steps"], 1);
  EXPECT_EQ(json["by_rank"].size(), json["num_ranks"]);
  EXPECT_EQ(json["worst_ops"].size(), 10);
  EXPECT_TRUE(json["unjoined_events"].empty());
  EXPECT_TRUE(json["problems"].empty()) << json["problems"];
  const nlohmann::json& path = json["step_error_along_critical_path"];
  std::int64_t sum = 0;
  for (const char* term : {"compute", "collective", "wait", "host"}) {
    sum += path[term]["difference_ps"].get<std::int64_t>();
  }
  EXPECT_EQ(sum, path["difference_ps"].get<std::int64_t>());
  EXPECT_EQ(Isthmus("compare " + Both() + " --json").out, answer.out)
      << "equal inputs, equal bytes";
}

TEST_F(CompareTest, TerminalReportIsCompactAndNamesAsManyWorstOpsAsAsked) {
  const Answer answer = Isthmus("compare " + Both() + " --worst 2");
  ASSERT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, AllOf(HasSubstr("predicted step"), HasSubstr("measured step"),
                                HasSubstr("Where the error comes from"), HasSubstr("Worst ops"),
                                HasSubstr("torch 2.11.0")));
  const nlohmann::json json = nlohmann::json::parse(
      Isthmus("compare " + Both() + " --worst 2 --json -o " + PathOf("c.json")).code == 0
          ? TextOf(PathOf("c.json"))
          : "{}");
  EXPECT_EQ(json["worst_ops"].size(), 2);
}

TEST_F(CompareTest, PerfettoFileShowsEveryRankTwice) {
  const std::string path = PathOf("both.pftrace");
  const Answer answer = Isthmus("compare " + Both() + " --perfetto " + path);
  ASSERT_EQ(answer.code, 0) << answer.err;
  const std::string bytes = TextOf(path);
  EXPECT_THAT(bytes, AllOf(HasSubstr("rank 0 predicted: "), HasSubstr("rank 0 measured: "),
                           HasSubstr("steps predicted"), HasSubstr("steps measured")));
  EXPECT_THAT(Isthmus("compare " + Both() + " --perfetto " + PathOf("both.json")).err,
              HasSubstr("name it .pftrace"));
}

TEST_F(CompareTest, RefusesTracesOfDifferentPrograms) {
  Store(Measure({"workload.global_batch=16"}), PathOf("other.isthmus"));
  const Answer answer = Isthmus("compare " + PathOf("p.isthmus") + " " + PathOf("other.isthmus"));
  EXPECT_EQ(answer.code, 2);
  EXPECT_EQ(answer.out, "");
  EXPECT_THAT(answer.err, AllOf(HasSubstr("different programs"), HasSubstr("tokens a step")));
}

TEST_F(CompareTest, RefusesWhatIsNoPairOfTraces) {
  Answer answer = Isthmus("compare " + PathOf("m.isthmus") + " " + PathOf("p.isthmus"));
  EXPECT_EQ(answer.code, 2);
  EXPECT_THAT(answer.err, HasSubstr("isthmus compare PREDICTED MEASURED"));

  answer = Isthmus("compare " + PathOf("p.isthmus") + " no/such.isthmus");
  EXPECT_EQ(answer.code, 2);
  EXPECT_THAT(answer.err, HasSubstr("no/such.isthmus"));

  answer = Isthmus("compare no/one.isthmus no/two.isthmus");
  EXPECT_EQ(answer.code, 2);
  EXPECT_THAT(answer.err, AllOf(HasSubstr("isthmus: error: no/one.isthmus: cannot be read"),
                                HasSubstr("isthmus: error: no/two.isthmus: cannot be read")));

  std::string bytes = TextOf(PathOf("m.isthmus"));
  std::ofstream(PathOf("cut.isthmus"), std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  answer = Isthmus("compare " + PathOf("p.isthmus") + " " + PathOf("cut.isthmus"));
  EXPECT_EQ(answer.code, 2);
  EXPECT_EQ(answer.out, "");

  answer = Isthmus("compare " + Both() + " -o " + PathOf("m.isthmus"));
  EXPECT_EQ(answer.code, 2);
  EXPECT_THAT(answer.err, HasSubstr("would overwrite"));
}

}  // namespace
}  // namespace isthmus::tests
