#include "reports/text.h"

#include <fstream>
#include <iostream>

#include <gtest/gtest.h>

#include "base/text.h"
#include "reports/internal/links_text.h"
#include "reports/internal/paint.h"
#include "reports/internal/words.h"

namespace isthmus::reports {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

Figures Example() {
  Figures figures;
  figures.scenario_name = "vlm-120b-4096";
  figures.scenario_hash = "8f0c2b11";
  figures.program_hash = "77aa0102";
  figures.profile_name = "h100-sxm";
  figures.commit = "0123abcd";
  figures.seed = 1;
  figures.placement = "non_colocated";
  figures.num_ranks = 4096;
  figures.num_microbatches = 32;
  figures.modules = {{"vision", "vit", "TP8 DP32", 3840, 256, 6.3e9},
                     {"llm", "decoder", "TP8 PP3 DP160", 0, 3840, 1.2e11}};
  figures.step_time_s = 20;
  figures.tokens_per_s = 2'097'152;
  figures.samples_per_s = 256;
  figures.model_tflops_per_gpu = 412.54;
  figures.mfu = 0.41713;
  figures.hfu = 0.45;
  figures.peak_tflops_per_gpu = 989;
  figures.flop_convention = "model: GEMMs and causal attention, three times forward";
  figures.shares = {0.75, 0, 0.125, 0.0625, 0.0125, 0.05};
  figures.roles = {{"llm.0", 1280, figures.shares}, {"vision.0", 256, figures.shares}};
  figures.exposed = {{"tp_comm", 0.9}, {"dp_comm", 0.3}, {"boundary_comm", 0.05}};
  figures.boundaries = {
      {"vision", "llm", "non-colocated fan-out 5", 3 * kGiB, 3 * kGiB / 2, 0.05, 0.0625}};
  figures.memory = {{.role = "llm.0",
                     .ranks = 1280,
                     .fullest_rank = 8,
                     .peak_bytes = 82 * kGiB,
                     .allocated_bytes = 78 * kGiB,
                     .lowest_peak_bytes = 82 * kGiB,
                     .capacity_bytes = 80 * kGiB,
                     .verdict = "does_not_fit",
                     .moment = "backward llm mb 3",
                     .categories = {{"activations", 40 * kGiB},
                                    {"parameters", 20 * kGiB},
                                    {"optimizer_state", 18 * kGiB},
                                    {"context", 4 * kGiB}}},
                    {.role = "vision.0",
                     .ranks = 256,
                     .peak_bytes = 40 * kGiB,
                     .capacity_bytes = 80 * kGiB,
                     .verdict = "fits",
                     .categories = {{"parameters", 40 * kGiB}}}};
  figures.critical_path = {{"compute", "llm", 0.7},           {"tp_comm", "llm", 0.1},
                           {"pipeline_comm", "llm", 0.05},    {"compute", "vision", 0.05},
                           {"dp_comm", "llm", 0.04},          {"optimizer", "llm", 0.03},
                           {"boundary_comm", "vision", 0.02}, {"straggler", "llm", 0.01}};
  figures.longest_segments = {
      {"compute", "llm", "backward", 8, 3, 1'000'000'000'000, 1'250'000'000'000}};
  figures.assumptions = {"gradients are reduced in fp32", "bulk overlap", "selective recompute",
                         "no stragglers", "a clock of 1.7 GHz"};
  figures.num_ops = 12345;
  figures.simulated_ranks = 24;
  figures.folded = true;
  return figures;
}

TEST(TextTest, ReportOfAnExampleIsAsApproved) {
  const std::string path = ISTHMUS_SOURCE_DIR "/tests/unit/reports/example_report.txt";
  const std::string text = RenderText(Example());
  if (std::getenv("ISTHMUS_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  const std::string approved((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(text, approved);
}

LinkFigures Links() {
  const FlowCause sync{.module = "llm", .purpose = "gradient_sync", .action = "reduce_scatter"};
  const FlowCause boundary{.module = "vision", .purpose = "boundary", .action = "exchange"};
  LinkFigures links{.end_s = 20, .bin_s = 5, .num_slow_flows = 1200, .lost_s = 3.5};
  links.kinds = {{.kind = "nvlink",
                  .num_links = 8192,
                  .bytes = 40 * kGiB,
                  .traffic = {{"boundary", 8 * kGiB}, {"gradient_sync", 32 * kGiB}},
                  .utilisation = 0.01,
                  .highest_utilisation = 0.02,
                  .over_time = {0, 0.01, 0.01, 0.02}},
                 {.kind = "uplink",
                  .num_links = 64,
                  .bytes = 6 * kGiB,
                  .traffic = {{"boundary", 6 * kGiB}},
                  .utilisation = 0.25,
                  .highest_utilisation = 0.5,
                  .over_time = {0.125, 0.25, 0.5, 0.125}}};
  links.hottest = {{.kind = "uplink",
                    .from = "leaf 0.3",
                    .to = "spine",
                    .bytes_per_second = 5e10,
                    .bytes = 4 * kGiB,
                    .traffic = {{"pipeline", kGiB}, {"boundary", 3 * kGiB}},
                    .utilisation = 0.5,
                    .busy_s = 12,
                    .over_time = {0.25, 1, 0.5, 0.25}}};
  links.hottest.push_back(links.hottest.front());  // two alike are one row, another one its own
  links.hottest.back().from = "leaf 0.4";
  links.hottest.push_back(links.hottest.front());
  links.hottest.back().from = "leaf 0.5";
  links.hottest.back().over_time = {0.25, 1, 0.25, 0.5};
  links.losses = {{.victim = boundary,
                   .culprit = sync,
                   .kind = "uplink",
                   .num_links = 12,
                   .num_flows = 1200,
                   .lost_s = 3.5,
                   .longest_s = 0.0625,
                   .worst_from = "leaf 0.3",
                   .worst_to = "spine",
                   .worst_lost_s = 0.5}};
  return links;
}

TEST(TextTest, LinksOfAnExampleAreAsApproved) {
  const std::string path = ISTHMUS_SOURCE_DIR "/tests/unit/reports/example_links.txt";
  const std::string text = RenderLinks(Links(), {});
  if (std::getenv("ISTHMUS_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  const std::string approved((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(text, approved);
  Figures figures = Example();
  EXPECT_EQ(RenderText(figures).find("Links"), std::string::npos);
  figures.links = Links();
  EXPECT_NE(RenderText(figures).find(text), std::string::npos);
}

TEST(TextTest, LinksThatNothingCrossedOrSlowedSaySo) {
  EXPECT_NE(RenderLinks({}, {}).find("nothing crossed any"), std::string::npos);
  LinkFigures links = Links();
  links.losses.clear();
  EXPECT_NE(RenderLinks(links, {}).find("nobody"), std::string::npos);
}

TEST(TextTest, LossesBeyondTheFirstAreCountedUnlessVerbose) {
  LinkFigures links = Links();
  links.losses.resize(9, links.losses.front());
  EXPECT_NE(RenderLinks(links, {}).find("and 3 more"), std::string::npos);
  EXPECT_EQ(RenderLinks(links, {.verbose = true}).find("more"), std::string::npos);
}

TEST(TextTest, VerboseShowsWhatIsLeftOut) {
  const std::string brief = RenderText(Example());
  const std::string verbose = RenderText(Example(), {.verbose = true});
  for (const char* detail : {"a clock of 1.7 GHz", "straggler", "context 4.00 GiB", "By role",
                             "Its longest pieces", "vision.0 at its peak"}) {
    EXPECT_NE(verbose.find(detail), std::string::npos) << detail;
  }
  for (const char* detail : {"a clock of 1.7 GHz", "context 4.00 GiB", "By role"}) {
    EXPECT_EQ(brief.find(detail), std::string::npos) << detail;
  }
  EXPECT_NE(brief.find("and 2 more (--verbose shows all)"), std::string::npos);
}

TEST(TextTest, ColoursOnlyWhenAskedAndThenNothingElseChanges) {
  EXPECT_EQ(RenderText(Example()).find('\x1b'), std::string::npos);
  std::string colored = RenderText(Example(), {.color = true});
  EXPECT_NE(colored.find("\x1b[1;31m"), std::string::npos);  // the verdict
  for (std::size_t at = colored.find('\x1b'); at != std::string::npos; at = colored.find('\x1b')) {
    colored.erase(at, colored.find('m', at) - at + 1);
  }
  EXPECT_EQ(colored, RenderText(Example()));
}

TEST(TextTest, WhatThePowerBalanceGivesStandsUnderTheHeadline) {
  Figures figures;
  EXPECT_EQ(RenderText(figures, {}).find("power balance"), std::string::npos);
  figures.duty_relief = DutyRelief{.clock_ratio = 0.84, .step_time_s = 2.82};
  EXPECT_NE(RenderText(figures, {}).find("at its power balance: clock 0.84, step 2.82 s"),
            std::string::npos);
}

TEST(TextTest, BoundariesOfARunWithoutTimesHaveNoExposedTime) {
  Figures figures;
  figures.boundaries = {{.from = "vision", .to = "llm", .kind = "colocated equal"}};
  EXPECT_NE(RenderText(figures, {}).find(" 0 s"), std::string::npos);
  figures.has_times = false;
  EXPECT_EQ(RenderText(figures, {}).find(" 0 s"), std::string::npos);
}

TEST(TextTest, EmptyFiguresStillGiveAReport) {
  EXPECT_NE(RenderText(Figures{}).find("step time"), std::string::npos);
}

TEST(BarTest, IsExactToAnEighthAndNeverHidesWhatIsThere) {
  EXPECT_EQ(Bar(0, 4), "");
  EXPECT_EQ(Bar(1, 4), "████");
  EXPECT_EQ(Bar(2, 4), "████");
  EXPECT_EQ(Bar(0.5, 4), "██");
  EXPECT_EQ(Bar(0.53125, 4), "██▏");  // 17 of 32 eighths
  EXPECT_EQ(Bar(1e-9, 4), "▏");
}

TEST(SparklineTest, IsInEighthsOfTheLargestAndNeverHidesWhatIsThere) {
  EXPECT_EQ(Sparkline({}), "");
  EXPECT_EQ(Sparkline({0, 0}), "··");
  EXPECT_EQ(Sparkline({0.5, 0.25, 0.0626, 1e-9, 0}), "█▄▂▁·");
}

TEST(WordsTest, NumbersReadWell) {
  EXPECT_EQ(RankRange(0, 3840), "ranks 0-3,839");
  EXPECT_EQ(RankRange(7, 1), "rank 7");
  EXPECT_EQ(ParametersInWords(1.2e11), "120 B");
  EXPECT_EQ(ParametersInWords(6.3e9), "6.3 B");
  EXPECT_EQ(ParametersInWords(2.5e7), "25.0 M");
  EXPECT_EQ(RateInWords(999.94), "999.9");
  EXPECT_EQ(RateInWords(1234.5), "1,235");
  EXPECT_EQ(base::Counted(1, "rank", "ranks"), "1 rank");
  EXPECT_EQ(KindInWords("optimizer_state"), "optimizer state");
}

}  // namespace
}  // namespace isthmus::reports
