#include "reports/json.h"

#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/reports/run_builder.h"

namespace isthmus::reports {
namespace {

Figures Example() {
  RunBuilder run;
  run.header.scenario_name = "vlm";
  run.header.scenario_hash = "1a2b";
  run.header.placement = "colocated";
  run.header.boundaries = {{"vision", "llm", "colocated equal", 64, 32}};
  run.header.assumptions = {"gradients are reduced in fp32"};
  const auto rank = run.AddClass("llm.0", 2);
  run.Compute(rank, 0, 3);
  run.trailer.end_ps = 10;
  run.trailer.simulated_ranks = 1;
  run.trailer.folded = true;
  run.trailer.memory = {{.rank_class = 0,
                         .peak_bytes = 5,
                         .device_bytes = 6,
                         .capacity_bytes = 8,
                         .verdict = "borderline",
                         .categories = {{"logits", 6}}}};
  return run.Analyse();
}

std::vector<std::string> Keys(const nlohmann::json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

TEST(JsonTest, HasLinksOnlyIfTheyWereAskedFor) {
  Figures figures = Example();
  EXPECT_FALSE(nlohmann::json::parse(RenderJson(figures)).contains("links"));
  const FlowCause sync{.module = "llm", .purpose = "gradient_sync", .action = "all_gather"};
  const FlowCause pipeline{.module = "llm", .purpose = "pipeline", .action = "exchange"};
  figures.links = LinkFigures{.end_s = 2, .bin_s = 1, .num_slow_flows = 3, .lost_s = 0.5};
  figures.links->kinds = {{.kind = "nic", .num_links = 7, .over_time = {0.5, 0.25}}};
  figures.links->hottest = {{.kind = "nic",
                             .from = "nic 0.1",
                             .to = "leaf 0.1",
                             .bytes_per_second = 5e10,
                             .bytes = 12,
                             .traffic = {{"pipeline", 12}},
                             .over_time = {1, 0}}};
  figures.links->losses = {{.victim = pipeline, .culprit = sync, .kind = "nic", .num_flows = 3}};
  const auto links = nlohmann::json::parse(RenderJson(figures)).at("links");
  EXPECT_EQ(Keys(links), (std::vector<std::string>{"bin_s", "end_s", "hottest", "kinds", "losses",
                                                   "lost_s", "slow_flows"}));
  EXPECT_EQ(Keys(links.at("kinds").at(0)),
            (std::vector<std::string>{"bytes", "highest_utilisation", "kind", "links",
                                      "traffic_bytes", "utilisation", "utilisation_by_bin"}));
  const auto& hottest = links.at("hottest").at(0);
  EXPECT_EQ(Keys(hottest),
            (std::vector<std::string>{"bandwidth_Bps", "busy_s", "bytes", "from", "kind", "to",
                                      "traffic_bytes", "utilisation", "utilisation_by_bin"}));
  EXPECT_EQ(hottest.at("traffic_bytes").at("pipeline"), 12);
  EXPECT_EQ(hottest.at("utilisation_by_bin"), (std::vector<double>{1, 0}));
  const auto& loss = links.at("losses").at(0);
  EXPECT_EQ(Keys(loss), (std::vector<std::string>{"culprit", "flows", "kind", "links", "longest_s",
                                                  "lost_s", "victim", "worst_link"}));
  EXPECT_EQ(loss.at("culprit").at("action"), "all_gather");
  EXPECT_EQ(loss.at("victim").at("purpose"), "pipeline");
}

TEST(JsonTest, HasTheKeysOfTheContract) {
  const auto json = nlohmann::json::parse(RenderJson(Example()));
  EXPECT_EQ(json.at("scenario").at("name"), "vlm");
  EXPECT_EQ(json.at("scenario").at("hash"), "1a2b");
  EXPECT_EQ(json.at("placement"), "colocated");
  EXPECT_EQ(json.at("num_ranks"), 2);
  for (const char* key :
       {"step_time_s", "model_tflops_per_gpu", "mfu", "hfu", "tokens_per_s", "samples_per_s"}) {
    EXPECT_TRUE(json.at(key).is_number()) << key;
  }
  EXPECT_TRUE(json.at("band").is_null());
  EXPECT_EQ(
      Keys(json.at("shares")),
      (std::vector<std::string>{"bubble", "compute", "copy", "exposed_comm", "host", "straggler"}));
  EXPECT_DOUBLE_EQ(json.at("shares").at("compute").get<double>(), 0.3);
  EXPECT_DOUBLE_EQ(json.at("shares").at("bubble").get<double>(), 0.7);
  const auto& memory = json.at("memory").at(0);
  EXPECT_EQ(memory.at("role"), "llm.0");
  EXPECT_EQ(memory.at("ranks"), 2);
  EXPECT_EQ(memory.at("peak_bytes"), 6);
  EXPECT_EQ(memory.at("capacity_bytes"), 8);
  EXPECT_EQ(memory.at("fits"), true);
  EXPECT_EQ(memory.at("verdict"), "borderline");
  EXPECT_EQ(memory.at("categories").at("logits"), 6);
  const auto& boundary = json.at("boundaries").at(0);
  EXPECT_EQ(boundary.at("from"), "vision");
  EXPECT_EQ(boundary.at("to"), "llm");
  EXPECT_EQ(boundary.at("kind"), "colocated equal");
  EXPECT_EQ(boundary.at("bytes_forward"), 64);
  EXPECT_EQ(boundary.at("bytes_backward"), 32);
  EXPECT_EQ(boundary.at("exposed_s"), 0.0);
  EXPECT_EQ(json.at("critical_path").at(0).at("category"), "host");
  EXPECT_EQ(json.at("critical_path").at(0).at("module"), "llm");
  EXPECT_DOUBLE_EQ(json.at("critical_path").at(0).at("share").get<double>(), 0.7);
  EXPECT_EQ(Keys(json.at("engine")),
            (std::vector<std::string>{"folded", "ops", "simulated_ranks"}));
  EXPECT_EQ(json.at("engine").at("ops"), 1);
  EXPECT_EQ(json.at("engine").at("folded"), true);
  EXPECT_EQ(json.at("assumptions").at(0), "gradients are reduced in fp32");
}

TEST(JsonTest, WithoutTimesNothingIsExposed) {
  Figures figures = Example();
  figures.has_times = false;
  const auto boundary = nlohmann::json::parse(RenderJson(figures)).at("boundaries").at(0);
  EXPECT_TRUE(boundary.at("exposed_s").is_null());
  EXPECT_TRUE(boundary.at("worst_exposed_s").is_null());
  EXPECT_EQ(boundary.at("bytes_forward"), 64);
}

TEST(JsonTest, CostAndBandAppearOnlyWhenThere) {
  Figures figures = Example();
  figures.cost = EngineCost{0.25, 1024};
  figures.band = Band{1.5, 2.5};
  const auto json = nlohmann::json::parse(RenderJson(figures));
  EXPECT_EQ(json.at("engine").at("wall_s"), 0.25);
  EXPECT_EQ(json.at("engine").at("peak_rss_bytes"), 1024);
  EXPECT_EQ(json.at("band").at("low_step_time_s"), 1.5);
  EXPECT_EQ(json.at("band").at("high_step_time_s"), 2.5);
}

TEST(JsonTest, NumbersReadBackToTheSameValue) {
  Figures figures = Example();
  figures.step_time_s = 0.1 + 0.2;  // 0.30000000000000004
  figures.mfu = 1.0 / 3.0;
  const auto json = nlohmann::json::parse(RenderJson(figures));
  EXPECT_EQ(json.at("step_time_s").get<double>(), 0.1 + 0.2);
  EXPECT_EQ(json.at("mfu").get<double>(), 1.0 / 3.0);
}

TEST(JsonTest, NamesThatAreNotUtf8DoNotBreakIt) {
  Figures figures = Example();
  figures.scenario_name = "caf\xe9";
  EXPECT_NO_THROW(RenderJson(figures));
}

}  // namespace
}  // namespace isthmus::reports
