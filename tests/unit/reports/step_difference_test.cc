#include "reports/step_difference.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "reports/json.h"
#include "reports/text.h"

namespace isthmus::reports {
namespace {

constexpr std::int64_t kMs = 1'000'000'000;  // picoseconds

// Figures of a step whose path is `path`, one piece after the other; pieces give their lengths.
Figures StepOf(std::vector<PathSegment> path) {
  Figures figures;
  figures.scenario_name = "small";
  figures.placement = "homogeneous";
  figures.program_hash = "1";
  figures.num_ranks = 2;
  for (PathSegment& piece : path) {
    piece.start_ps = figures.window_ps;
    figures.window_ps += piece.end_ps;
    piece.end_ps = figures.window_ps;
  }
  figures.path = std::move(path);
  figures.step_time_s = static_cast<double>(figures.window_ps) * 1e-12;
  figures.tokens_per_s = 1000 / figures.step_time_s;
  return figures;
}

PathSegment Piece(const std::string& op, const std::string& category, const std::string& kind,
                  std::int64_t length_ps, const std::string& link_kind = {},
                  const std::string& link = {}, std::int32_t rank = 0) {
  return {.category = category,
          .module = "llm",
          .op = op,
          .rank = rank,
          .end_ps = length_ps,
          .kind = kind,
          .link_kind = link_kind,
          .link = link};
}

Figures Base() {
  return StepOf(
      {Piece("forward llm mb0 block 0", "compute", "compute", 10 * kMs),
       Piece("forward llm mb0 block 1", "compute", "compute", 10 * kMs + 1),
       Piece("pipeline exchange mb0: 1 out, 0 in", "pipeline_comm", "p2p", 2 * kMs, "nic"),
       Piece("backward llm mb0 block 1", "host", "wait", kMs),
       Piece("backward llm mb0 block 1", "compute", "compute", 40 * kMs),
       Piece("optimizer step llm", "optimizer", "compute", 3 * kMs)});
}

// The slower link, another rank's forward, the same backward, an optimizer 10 us faster.
Figures Changed() {
  return StepOf({Piece("forward llm mb0 block 0", "compute", "compute", 20 * kMs + 1, {}, {}, 1),
                 Piece("pipeline exchange mb0: 1 out, 0 in", "pipeline_comm", "p2p", 9 * kMs, "nic",
                       "nic 0.0 -> leaf 0.0", 1),
                 Piece("backward llm mb0 block 1", "compute", "compute", 41 * kMs),
                 Piece("optimizer step llm", "optimizer", "compute", 3 * kMs - 10'000'000)});
}

TEST(StepDifferenceTest, TermsAreSumsByOpAndSumToTheDifference) {
  const StepDifference difference = TakeApart(Base(), Changed());
  // +7 ms of messages, +1 ms of backward, -1 ms of the wait before it, -10 us of the optimizer; the
  // two forwards are as long as the one.
  EXPECT_EQ(difference.difference_ps(), 7 * kMs - 10'000'000);
  ASSERT_EQ(difference.terms.size(), 5U);
  const DifferenceTerm& messages = difference.terms[0];
  EXPECT_EQ(messages.op, "pipeline exchange");
  EXPECT_EQ(messages.difference_ps(), 7 * kMs);
  EXPECT_EQ(messages.link, "nic 0.0 -> leaf 0.0");
  EXPECT_EQ(messages.rank, 1);
  std::int64_t sum = 0;
  for (const DifferenceTerm& term : difference.terms) sum += term.difference_ps();
  EXPECT_EQ(sum, difference.difference_ps());
  const DifferenceTerm& forward = difference.terms.back();
  EXPECT_EQ(forward.op, "forward llm");
  EXPECT_EQ(forward.base_pieces, 2);
  EXPECT_EQ(forward.changed_pieces, 1);
  EXPECT_EQ(forward.difference_ps(), 0);
}

TEST(StepDifferenceTest, AnOpThatAnotherKindOfLinkDecidesIsOneTerm) {
  const auto of = [](const std::string& link_kind, std::int64_t length_ps) {
    return StepOf({Piece("all_gather llm", "dp_comm", "collective", length_ps, link_kind)});
  };
  const StepDifference difference = TakeApart(of("pcie", 3 * kMs), of("nic", 5 * kMs));
  ASSERT_EQ(difference.terms.size(), 1U);
  EXPECT_EQ(difference.terms[0].link_kind, "pcie -> nic");
  EXPECT_EQ(difference.terms[0].difference_ps(), 2 * kMs);
  EXPECT_EQ(TakeApart(of("nic", 5 * kMs), of("pcie", 3 * kMs)).terms[0].link_kind, "nic -> pcie");
}

TEST(StepDifferenceTest, OtherIsWhatIsSmallWhateverItsSigns) {
  // 5 % of 6.99 ms are 349.5 us: +1 ms and -1 ms cancel but are named, 10 us are not.
  const StepDifference difference = TakeApart(Base(), Changed());
  EXPECT_EQ(difference.num_named, 3U);
  EXPECT_EQ(difference.Other().difference_ps(), -10'000'000);
  EXPECT_EQ(TakeApart(Base(), Changed(), 0).num_named, 4U);  // all that differ
  EXPECT_EQ(TakeApart(Base(), Base()).num_named, 0U);
}

TEST(StepDifferenceTest, OpsOfAnotherProgramAreMatchedByName) {
  // The forward is in other microbatches and blocks; only the changed program gathers parameters.
  Figures changed =
      StepOf({Piece("all_gather parameter_gather llm", "dp_comm", "collective", 5 * kMs, "nic"),
              Piece("forward llm mb7 block 3", "compute", "compute", 22 * kMs),
              Piece("pipeline exchange mb7: 4 out, 0 in", "pipeline_comm", "p2p", 2 * kMs, "nic"),
              Piece("backward llm mb7", "compute", "compute", 40 * kMs)});
  changed.program_hash = "2";
  const StepDifference difference = TakeApart(Base(), std::move(changed), 0);
  EXPECT_FALSE(difference.same_program);
  ASSERT_EQ(difference.notes.size(), 1U);
  // +5 ms of the gather, -3 ms of the optimizer that is gone, 22 - 20 ms of the forward, -1 ms of
  // the wait; exchange and backward are as long.
  ASSERT_EQ(difference.num_named, 4U);
  EXPECT_EQ(difference.terms[0].op, "all_gather parameter_gather llm");
  EXPECT_EQ(difference.terms[0].base_pieces, 0);
  EXPECT_EQ(difference.terms[1].op, "optimizer step llm");
  EXPECT_EQ(difference.terms[1].changed_pieces, 0);
  EXPECT_EQ(difference.terms[2].op, "forward llm");
  EXPECT_EQ(difference.terms[2].base_pieces, 2);
  EXPECT_EQ(difference.terms[2].difference_ps(), 2 * kMs - 1);
  EXPECT_EQ(difference.terms[3].category, "host");
}

TEST(StepDifferenceTest, JsonSumsToTheDifference) {
  const auto json = nlohmann::json::parse(RenderJson(TakeApart(Base(), Changed())));
  std::int64_t sum = json["other"]["difference_ps"];
  for (const auto& term : json["terms"]) sum += term["difference_ps"].get<std::int64_t>();
  EXPECT_EQ(sum, json["difference_ps"].get<std::int64_t>());
  EXPECT_EQ(json["other"]["terms"], 2);
  EXPECT_TRUE(json["terms"][1]["link"].is_null());
}

TEST(StepDifferenceTest, TextIsAsApproved) {
  const std::string path = ISTHMUS_SOURCE_DIR "/tests/unit/reports/example_difference.txt";
  StepDifference difference = TakeApart(Base(), Changed());
  difference.network = "nccl";
  difference.changes = {{"cluster.node_groups.dgx.nic_bandwidth", "50 GB/s", "10 GB/s"},
                        {"cluster.slow_gpus", "", "[{gpu: 0, speed_factor: 0.9}]"}};
  const std::string text = RenderText(difference);
  if (std::getenv("ISTHMUS_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  const std::string approved((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(text, approved);
}

}  // namespace
}  // namespace isthmus::reports
