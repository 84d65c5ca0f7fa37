#include "scenarios/changes.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace isthmus::scenarios {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kGpt = "scenarios/examples/gpt-8gpu.yaml";  // global_batch 64, NIC 50 GB/s

std::vector<std::string> Overrides(const std::vector<std::string>& assignments) {
  return OverridesOf(ChangesOf(LoadScenario(kGpt), assignments));
}

std::string ErrorOf(const std::vector<std::string>& overrides) {
  try {
    LoadScenario(kGpt, overrides);
  } catch (const base::ScenarioError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ChangesTest, RelativeValuesAreOfTheNumberThatIsThere) {
  EXPECT_THAT(Overrides({"workload.global_batch=2x"}), ElementsAre("workload.global_batch=128"));
  EXPECT_THAT(Overrides({"workload.global_batch=+50%"}), ElementsAre("workload.global_batch=96"));
  EXPECT_THAT(Overrides({"workload.global_batch=-25%"}), ElementsAre("workload.global_batch=48"));
  EXPECT_THAT(Overrides({"workload.global_batch=0.5x"}), ElementsAre("workload.global_batch=32"));
}

TEST(ChangesTest, DefaultsDerivedValuesAndUnitsCount) {
  // microbatch_size is left out (1), num_microbatches derived: 64 / (dp 2 · 1).
  EXPECT_THAT(Overrides({"workload.microbatch_size=4x"}),
              ElementsAre("workload.microbatch_size=4"));
  EXPECT_THAT(Overrides({"workload.num_microbatches=2x"}),
              ElementsAre("workload.num_microbatches=64"));
  EXPECT_THAT(Overrides({"cluster.node_groups.dgx.nic_latency=100x"}),
              ElementsAre("cluster.node_groups.dgx.nic_latency=80 us"));  // of 800 ns
  // 50 GB/s · 1.1 is 55.00000000000001 in binary.
  EXPECT_THAT(Overrides({"cluster.node_groups.dgx.nic_bandwidth=+10%"}),
              ElementsAre("cluster.node_groups.dgx.nic_bandwidth=55 GB/s"));
}

TEST(ChangesTest, DefaultsThatNoFileNeedSayCount) {
  EXPECT_THAT(Overrides({"cluster.fabric.num_spines=2x"}),
              ElementsAre("cluster.fabric.num_spines=2"));
}

TEST(ChangesTest, WhatIsThereAndNoNumberCantBeMultiplied) {
  EXPECT_THAT(ErrorOf({"name=2x"}),
              AllOf(HasSubstr("--set name"), HasSubstr("there is no number that 2x could multiply"),
                    HasSubstr("it is gpt-8gpu; give the value itself, a text in quotes")));
  EXPECT_THAT(ErrorOf({"parameters.nope=+5%"}),
              HasSubstr("there is no number that +5% could multiply"));
  EXPECT_THAT(ErrorOf({"cluster.fabric=2x"}), HasSubstr("no number"));
  EXPECT_EQ(LoadScenario(kGpt, {"name=\"2x\""}).name, "2x");
}

TEST(ChangesTest, ShortKeysStandForEveryNodeGroup) {
  EXPECT_THAT(Overrides({"cluster.nic.bandwidth=2x", "cluster.nvlink.latency=1 us"}),
              ElementsAre("cluster.node_groups.dgx.nic_bandwidth=100 GB/s",
                          "cluster.node_groups.dgx.nvlink_latency=1 us"));
}

TEST(ChangesTest, ParametersAreOfTheProfile) {
  const Scenario base = LoadScenario(kGpt);
  const double ratio = base.profile.Number("clock.bf16.ratio");
  const std::vector<Change> changes = ChangesOf(base, {"parameters.clock.bf16.ratio=0.5x"});
  EXPECT_EQ(std::stod(changes.front().before), ratio);
  EXPECT_EQ(std::stod(changes.front().after), ratio / 2);
}

TEST(ChangesTest, LoadingTakesRelativeValuesOfWhatAllOthersGiveAndTheLaterOfAKey) {
  const Scenario scenario = LoadScenario(
      kGpt, {"workload.global_batch=16", "workload.global_batch=2x", "cluster.nic.bandwidth=2x",
             "cluster.nvlink.bandwidth=2x", "cluster.node_groups.dgx.nvlink_bandwidth=300 GB/s"});
  EXPECT_EQ(scenario.job.workload.global_batch, 32);
  EXPECT_EQ(scenario.cluster.node_groups.front().nic_bandwidth.value.value(), 100e9);
  EXPECT_EQ(scenario.cluster.node_groups.front().nvlink_bandwidth.value.value(), 300e9);
}

TEST(ChangesTest, WhatIsNoNumberStaysForTheReaderToRefuse) {
  EXPECT_THAT(ErrorOf({"workload.global_batch=-150%"}),
              HasSubstr("\"-150%\" is not a whole number"));
  EXPECT_THAT(ErrorOf({"workload.globl_batch=2x"}), HasSubstr("did you mean global_batch?"));
  EXPECT_THAT(ErrorOf({"workload.global_batch=1.01x"}),
              HasSubstr("\"64.64\" is not a whole number"));
  EXPECT_THAT(ErrorOf({"workload.global_batch=x"}), HasSubstr("\"x\" is not a whole number"));
  EXPECT_THROW(ChangesOf(LoadScenario(kGpt), {"nodes"}), base::ScenarioError);
  EXPECT_THROW(ChangesOf(LoadScenario(kGpt), {"nodes=2", "nodes=3"}), base::ScenarioError);
}

TEST(ChangesTest, ShortKeysAreNamedAsTheyWereWritten) {
  const std::string empty = ErrorOf({"cluster.nic.bandwidth="});
  EXPECT_THAT(empty, HasSubstr("--set cluster.nic.bandwidth: error: no value is given"));
  EXPECT_EQ(empty.find("error:"), empty.rfind("error:"));
  EXPECT_THAT(ErrorOf({"cluster.nic.bandwith=2x"}), HasSubstr("cluster.nic.bandwidth?"));
  EXPECT_THAT(ErrorOf({"cluster.nic.bandwith=1 GB/s"}), HasSubstr("cluster.nic.bandwidth?"));
  // Nothing that a step of years could come from.
  EXPECT_THAT(
      ErrorOf({"cluster.nic.bandwidth=1e-300 B/s"}),
      HasSubstr("cluster.node_groups.dgx.nic_bandwidth: error: 1e-300 B/s is not a bandwidth"));
}

TEST(ChangesTest, ItemsAreThoseOfAListThatIsThere) {
  EXPECT_THAT(
      ErrorOf({"cluster.link_faults.0.bandwidth_factor=0.5"}),
      HasSubstr("error: cluster.link_faults has no item 0\n  hint: give the list as a whole: "
                "cluster.link_faults=[{…}, …]"));
}

TEST(ChangesTest, PlainAssignmentsNeedNoBase) {
  EXPECT_FALSE(NeedsBase("workload.global_batch=64"));
  EXPECT_FALSE(NeedsBase("modules.llm.model=llama3-8b"));
  EXPECT_FALSE(NeedsBase("nodes"));
  EXPECT_FALSE(NeedsBase("name=max"));
  EXPECT_TRUE(NeedsBase("nodes=2x"));
  EXPECT_TRUE(NeedsBase("cluster.pcie.latency=1 us"));
}

}  // namespace
}  // namespace isthmus::scenarios
