#include "reports/comparison.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "reports/alignment.h"
#include "reports/json.h"
#include "reports/text.h"
#include "tests/unit/reports/run_builder.h"
#include "traces/recorder.h"

namespace isthmus::reports {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

traces::Trace TraceOf(RunBuilder run, traces::TraceKind kind) {
  run.header.kind = kind;
  run.header.scenario_name = "pipeline";
  run.header.program_hash = "abc";
  for (traces::RankClass& rank_class : run.header.classes) {
    rank_class.members.clear();
    for (std::int32_t member = 0; member < rank_class.count; ++member) {
      rank_class.members.push_back(rank_class.representative + member);
    }
  }
  run.trailer.step_end_ps = {run.trailer.end_ps};
  return {run.header, run.events, {}, run.trailer};
}

// Rank 0 computes and sends; rank 1 computes on its own, and then on what it received.
struct Pipeline {
  std::int64_t first_end = 0;
  std::int64_t posted = 0;
  std::int64_t arrived = 0;
  std::int64_t own_end = 0;
  std::int64_t second_start = 0;
  std::int64_t second_end = 0;

  RunBuilder Build() const {
    RunBuilder run;
    run.AddClass("first", 1, {}, {1});
    run.AddClass("second", 1, {}, {0});
    run.Compute(0, 0, first_end);
    run.Transfer(0, true, 0, posted, posted, arrived, {{.op = 0}});
    run.Compute(1, 0, own_end);
    run.Transfer(1, false, 0, 0, posted, arrived);
    run.Compute(1, second_start, second_end, {{.op = 1, .transfer = 1}});
    return run;
  }
};

constexpr Pipeline kPredicted{.first_end = 100,
                              .posted = 100,
                              .arrived = 120,
                              .own_end = 150,
                              .second_start = 150,
                              .second_end = 230};
constexpr Pipeline kMeasured{.first_end = 140,
                             .posted = 150,
                             .arrived = 180,
                             .own_end = 50,
                             .second_start = 190,
                             .second_end = 250};

Comparison CompareRuns(const RunBuilder& predicted, const RunBuilder& measured) {
  return Compare(AlignTraces(TraceOf(predicted, traces::TraceKind::kPredicted),
                             TraceOf(measured, traces::TraceKind::kMeasured)));
}

void ExpectTerm(const ErrorTerm& term, std::int64_t predicted, std::int64_t measured) {
  EXPECT_EQ(term.predicted_ps, predicted);
  EXPECT_EQ(term.measured_ps, measured);
}

// The measured path is rank 0's op, the message, rank 1's second op: 140 + 30 + 60, with 10 of host
// before the message and 10 after it. Predicted, these took 100 + 20 + 80; between the message's
// end and the second op rank 1 was still busy with its own op: 30 of waiting.
TEST(Comparison, AttributesTheDifferenceAlongTheMeasuredPath) {
  const Comparison comparison = CompareRuns(kPredicted.Build(), kMeasured.Build());
  ExpectTerm(comparison.path.compute, 180, 200);
  ExpectTerm(comparison.path.collective, 20, 30);
  ExpectTerm(comparison.path.wait, 30, 0);
  ExpectTerm(comparison.path.host, 0, 20);
  EXPECT_EQ(comparison.predicted_window_ps, 230);
  EXPECT_EQ(comparison.measured_window_ps, 250);
}

// Of the 30 before the second op, rank 1's own op holds it up for 10; then it is late for no reason
// that an op gives, for 5, which is the host's, and so is the wait imposed after that.
TEST(Comparison, CountsPredictedHostTimeAsHost) {
  Pipeline pipeline = kPredicted;
  pipeline.own_end = 130;
  RunBuilder predicted = pipeline.Build();
  predicted.events.back().issue_ps = 135;
  predicted.trailer.waits = {{1, 2, 135, 150, false}};
  const Comparison comparison = CompareRuns(predicted, kMeasured.Build());
  ExpectTerm(comparison.path.wait, 10, 0);
  ExpectTerm(comparison.path.host, 20, 20);
}

TEST(Comparison, NamesTheWorstOps) {
  const Comparison comparison = CompareRuns(kPredicted.Build(), kMeasured.Build());
  // Differences: 100 of rank 1's own op, 40 of rank 0's, 20 of rank 1's second, 10 of the message.
  ASSERT_EQ(comparison.worst_ops.size(), 5);
  EXPECT_EQ(comparison.worst_ops[0].rank, 1);
  EXPECT_EQ(comparison.worst_ops[0].op, 0);
  EXPECT_FALSE(comparison.worst_ops[0].on_critical_path);
  EXPECT_EQ(comparison.worst_ops[1].rank, 0);
  EXPECT_TRUE(comparison.worst_ops[1].on_critical_path);
  EXPECT_DOUBLE_EQ(comparison.worst_ops[1].time.predicted_s, 100e-12);
  EXPECT_DOUBLE_EQ(comparison.worst_ops[1].time.measured_s, 140e-12);
  EXPECT_EQ(comparison.worst_ops[3].transfer, 1);
}

TEST(Comparison, SumsDurationsByKindPerRank) {
  const Comparison comparison = CompareRuns(kPredicted.Build(), kMeasured.Build());
  ASSERT_EQ(comparison.kinds.size(), 2);
  // Computes: 100 + 150 + 80 predicted, 140 + 50 + 60 measured, over two ranks.
  EXPECT_EQ(comparison.kinds[0].key, "compute ");
  EXPECT_EQ(comparison.kinds[0].num_events, 3);
  EXPECT_DOUBLE_EQ(comparison.kinds[0].time.predicted_s, 165e-12);
  EXPECT_DOUBLE_EQ(comparison.kinds[0].time.measured_s, 125e-12);
  // Of 40/140, 100/50 and 20/60 the middle one.
  EXPECT_DOUBLE_EQ(comparison.kinds[0].median_abs_error, 20.0 / 60);
}

TEST(Comparison, ListsWhatHasNoTwin) {
  RunBuilder measured = kMeasured.Build();
  std::erase_if(measured.events,
                [](const traces::Event& event) { return event.rank_class == 1 && event.op == 0; });
  const Comparison comparison = CompareRuns(kPredicted.Build(), measured);
  ASSERT_EQ(comparison.lone.size(), 1);
  EXPECT_EQ(comparison.lone[0].rank, 1);
  EXPECT_TRUE(comparison.lone[0].predicted);
  EXPECT_EQ(comparison.num_joined, 4);
  ASSERT_EQ(comparison.problems.size(), 1);
  EXPECT_EQ(comparison.problems[0].kind, traces::MeasuredProblem::Kind::kMissing);
}

TEST(Comparison, TakesTheMedianStepAfterTheWarmUp) {
  RunBuilder measured = kMeasured.Build();
  measured.header.measurement.num_warmup_steps = 1;
  measured.header.measurement.step_times_ps = {900, 250, 240, 270, 260};
  const Comparison comparison = CompareRuns(kPredicted.Build(), measured);
  ASSERT_TRUE(comparison.steps.has_value());
  EXPECT_EQ(comparison.steps->num_steps, 4);
  EXPECT_DOUBLE_EQ(comparison.steps->median_s, 255e-12);
  EXPECT_DOUBLE_EQ(comparison.steps->shortest_s, 240e-12);
  EXPECT_DOUBLE_EQ(comparison.steps->longest_s, 270e-12);
  EXPECT_DOUBLE_EQ(comparison.steps->spread, 30.0 / 255);
  EXPECT_DOUBLE_EQ(*comparison.step_time.error(), 230.0 / 255 - 1);
}

// A block of 100 whose inner collective, measured, took 30 of rank 0 and 50 of rank 1's 100.
TEST(Alignment, SplitsBlocksByTheirTimedPieces) {
  RunBuilder run;
  for (const std::uint32_t rank : {0U, 1U}) {
    run.AddClass("stage", 1, {0});
    run.header.roles[rank].blocks = {{{"mlp", traces::Category::kTpComm}}};
    run.Add(rank, {.name = "forward", .kind = "compute", .group = 1, .block = 1}, 0, 0, 100);
  }
  run.header.groups = {{0, 1}};
  RunBuilder predicted = run;
  for (traces::RoleRecord& role : predicted.header.roles) {
    role.ops[0].inner_shares = {{traces::Category::kCompute, 90}, {traces::Category::kTpComm, 10}};
  }
  const AlignedTraces borrowed = AlignTraces(TraceOf(predicted, traces::TraceKind::kPredicted),
                                             TraceOf(run, traces::TraceKind::kMeasured));
  EXPECT_EQ(borrowed.measured.header.roles[0].ops[0].inner_shares,
            predicted.header.roles[0].ops[0].inner_shares);
  EXPECT_THAT(borrowed.notes, ElementsAre(HasSubstr("split as predicted")));

  run.events.push_back({0, 0, 2, 40, 40, 70});
  run.events.push_back({1, 0, 2, 40, 40, 90});
  const AlignedTraces timed = AlignTraces(TraceOf(predicted, traces::TraceKind::kPredicted),
                                          TraceOf(run, traces::TraceKind::kMeasured));
  using traces::Category;
  EXPECT_THAT(timed.measured.header.roles[0].ops[0].inner_shares,
              ElementsAre(traces::InnerShare{Category::kCompute, 70},
                          traces::InnerShare{Category::kTpComm, 30}));
  EXPECT_THAT(timed.measured.header.roles[1].ops[0].inner_shares,
              ElementsAre(traces::InnerShare{Category::kCompute, 50},
                          traces::InnerShare{Category::kTpComm, 50}));
  EXPECT_TRUE(timed.notes.empty());
}

std::string ErrorOf(const traces::Trace& predicted, const traces::Trace& measured) {
  try {
    AlignTraces(predicted, measured);
  } catch (const base::Error& error) {
    return error.what();
  }
  return "none";
}

TEST(Alignment, SaysWhatDiffersBetweenPrograms) {
  const traces::Trace predicted = TraceOf(kPredicted.Build(), traces::TraceKind::kPredicted);
  traces::Trace measured = TraceOf(kMeasured.Build(), traces::TraceKind::kMeasured);
  EXPECT_THAT(ErrorOf(measured, measured), HasSubstr("the first trace is a measured one"));
  EXPECT_THAT(ErrorOf(predicted, predicted), HasSubstr("the second trace is a predicted one"));
  measured.header.program_hash = "def";
  measured.header.scenario_name = "other";
  measured.header.modules[1].layout = "TP2 PP2";
  measured.header.num_ranks = 4;
  EXPECT_THAT(ErrorOf(predicted, measured),
              AllOf(HasSubstr("different programs"), HasSubstr("scenario 'pipeline', 2 ranks"),
                    HasSubstr("scenario 'other', 4 ranks"), HasSubstr("llm TP2 PP2"),
                    HasSubstr("program abc"), HasSubstr("program def")));
}

TEST(Alignment, RefusesTracesThatLieAboutTheirProgram) {
  const traces::Trace predicted = TraceOf(kPredicted.Build(), traces::TraceKind::kPredicted);
  traces::Trace measured = TraceOf(kMeasured.Build(), traces::TraceKind::kMeasured);
  measured.header.roles[1].ops.pop_back();
  EXPECT_THAT(ErrorOf(predicted, measured), HasSubstr("rank 1 has other ops in each"));
  measured = TraceOf(kMeasured.Build(), traces::TraceKind::kMeasured);
  measured.header.classes[1].count = 2;
  EXPECT_THAT(ErrorOf(predicted, measured), HasSubstr("one for each of the 2 ranks"));
  measured.events.clear();
  EXPECT_THAT(ErrorOf(predicted, measured), HasSubstr("has no events"));
}

TEST(ComparisonJson, CarriesUnitsAndBothSides) {
  const Comparison comparison = CompareRuns(kPredicted.Build(), kMeasured.Build());
  const nlohmann::json json = nlohmann::json::parse(RenderJson(comparison));
  EXPECT_EQ(json["step_time"]["predicted_s"], 230e-12);
  EXPECT_EQ(json["step_time"]["measured_s"], 250e-12);
  EXPECT_EQ(json["step_error_along_critical_path"]["wait"]["difference_ps"], 30);
  EXPECT_EQ(json["step_error_along_critical_path"]["difference_ps"], -20);
  EXPECT_EQ(json["measured_steps"], nullptr);
  EXPECT_EQ(json["worst_ops"][3]["transfer"], 0);
  EXPECT_EQ(json["by_rank"][1]["uses"]["compute"]["measured_s"], 110e-12);
  EXPECT_EQ(json["clocks"]["corrected"], false);
}

TEST(ComparisonText, ShowsTermsWorstFirst) {
  const std::string text = RenderText(CompareRuns(kPredicted.Build(), kMeasured.Build()));
  EXPECT_THAT(text, HasSubstr("-8.0 %"));
  const std::size_t wait = text.find("\n  wait");
  ASSERT_NE(wait, std::string::npos);
  EXPECT_LT(wait, text.find("\n  compute"));
  EXPECT_THAT(text, HasSubstr("Worst ops"));
}

}  // namespace
}  // namespace isthmus::reports
