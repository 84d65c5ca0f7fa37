#include "backend/launch/rank_environment.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/launch/internal/slurm.h"
#include "base/error.h"

namespace isthmus::backend {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ErrorOf(const Variables& variables) {
  try {
    static_cast<void>(ReadRankEnvironment(variables));
  } catch (const base::Error& error) {
    return error.what();
  }
  return "no error";
}

const Variables kTorchrun = {{"RANK", "9"},
                             {"WORLD_SIZE", "16"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "8"},
                             {"MASTER_ADDR", "node-a"},
                             {"MASTER_PORT", "29400"}};

// What srun sets for task 9 of 12 on 8 + 4 ranks.
const Variables kSlurm = {{"SLURM_PROCID", "9"},
                          {"SLURM_NTASKS", "16"},
                          {"SLURM_STEP_NUM_TASKS", "12"},
                          {"SLURM_LOCALID", "1"},
                          {"SLURM_NODEID", "1"},
                          {"SLURM_STEP_TASKS_PER_NODE", "8,4"},
                          {"SLURM_STEP_NODELIST", "gpu-[007-008]"},
                          {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.1"},
                          {"SLURM_JOB_ID", "123456"},
                          {"SLURM_STEP_ID", "2"}};

const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "3"},
                            {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};

Variables With(Variables variables, const Variables& changes) {
  for (const auto& [name, value] : changes) variables[name] = value;
  return variables;
}
Variables Without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

TEST(RankEnvironment, TorchrunSaysEverything) {
  const RankEnvironment expected = {9, 16, 1, 8, "node-a", 29400};
  EXPECT_EQ(ReadRankEnvironment(kTorchrun), expected);
}

TEST(RankEnvironment, WhatIsWrittenIsReadAgain) {
  const RankEnvironment environment = {2, 4, 2, 4, "127.0.0.1", 40123};
  EXPECT_EQ(ReadRankEnvironment(ToVariables(environment)), environment);
}

TEST(RankEnvironment, SlurmsListsGiveMasterPortAndRanksOfTheMachine) {
  // Task 9 is on machine 1, which has 4; port 15000 + (123456 + 2) mod 10000 = 18458. The step has
  // 12 tasks, whatever the job has.
  const RankEnvironment expected = {9, 12, 1, 4, "gpu-007", 18458};
  EXPECT_EQ(ReadRankEnvironment(kSlurm), expected);
}

TEST(RankEnvironment, MasterVariablesReplaceSlurms) {
  const RankEnvironment environment =
      ReadRankEnvironment(With(kSlurm, {{"MASTER_ADDR", "ib0-gpu-007"}, {"MASTER_PORT", "555"}}));
  EXPECT_EQ(environment.master_address, "ib0-gpu-007");
  EXPECT_EQ(environment.master_port, 555);
}

TEST(RankEnvironment, WithoutAListSlurmsLaunchNodeIsTheMaster) {
  EXPECT_EQ(ReadRankEnvironment(Without(kSlurm, "SLURM_STEP_NODELIST")).master_address, "10.0.0.1");
}

TEST(RankEnvironment, TorchrunInsideASlurmStepCounts) {
  EXPECT_EQ(ReadRankEnvironment(With(kSlurm, kTorchrun)).master_address, "node-a");
}

TEST(RankEnvironment, OpenMpiInsideASlurmStepCounts) {
  EXPECT_EQ(ReadRankEnvironment(With(kSlurm, kOpenMpi)).rank, 3);
}

TEST(RankEnvironment, OpenMpiOnOneMachineNeedsNoMaster) {
  const RankEnvironment expected = {3, 4, 3, 4, "127.0.0.1", 29500};
  EXPECT_EQ(ReadRankEnvironment(kOpenMpi), expected);
}

TEST(RankEnvironment, OpenMpiOnTwoMachinesTeachesHowToNameTheMaster) {
  const Variables two_machines =
      With(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}});
  EXPECT_THAT(ErrorOf(two_machines), HasSubstr("mpirun -x MASTER_ADDR=$(hostname)"));
  EXPECT_EQ(ReadRankEnvironment(With(two_machines, {{"MASTER_ADDR", "node-a"}})).master_address,
            "node-a");
}

TEST(RankEnvironment, NoLauncherIsAnErrorThatNamesThem) {
  EXPECT_THAT(ErrorOf({}), AllOf(HasSubstr("torchrun"), HasSubstr("srun"), HasSubstr("mpirun"),
                                 HasSubstr("isthmus run")));
}

TEST(RankEnvironment, EverythingMissingIsToldAtOnce) {
  EXPECT_THAT(ErrorOf({{"RANK", "0"}}),
              AllOf(HasSubstr("WORLD_SIZE is missing"), HasSubstr("LOCAL_RANK is missing"),
                    HasSubstr("LOCAL_WORLD_SIZE is missing"), HasSubstr("MASTER_ADDR is missing"),
                    HasSubstr("MASTER_PORT is missing")));
}

TEST(RankEnvironment, ContradictionsAreToldAtOnce) {
  EXPECT_THAT(ErrorOf(With(kTorchrun, {{"RANK", "16"}, {"LOCAL_RANK", "8"}})),
              AllOf(HasSubstr("RANK=16 is not below WORLD_SIZE=16"),
                    HasSubstr("LOCAL_RANK=8 is not below LOCAL_WORLD_SIZE=8")));
  EXPECT_THAT(ErrorOf(With(kTorchrun, {{"LOCAL_WORLD_SIZE", "17"}})),
              HasSubstr("LOCAL_WORLD_SIZE=17 is more than WORLD_SIZE=16"));
  EXPECT_THAT(ErrorOf(With(kSlurm, {{"WORLD_SIZE", "16"}})),
              HasSubstr("WORLD_SIZE=16 contradicts SLURM_STEP_NUM_TASKS=12"));
}

TEST(RankEnvironment, NumbersAreWholeAndInRange) {
  EXPECT_THAT(ErrorOf(With(kTorchrun, {{"RANK", "x"}, {"MASTER_PORT", "65536"}})),
              AllOf(HasSubstr("RANK=\"x\" is no whole number"),
                    HasSubstr("MASTER_PORT=65536 is out of range: port of rank 0, 1 to 65535"),
                    Not(HasSubstr("WORLD_SIZE"))));
}

TEST(RankEnvironment, ARankOutsideASlurmStepIsToldToUseSrun) {
  // As in the batch script itself, where no step runs.
  Variables batch = {{"SLURM_PROCID", "0"},
                     {"SLURM_NTASKS", "16"},
                     {"SLURM_LOCALID", "0"},
                     {"SLURM_NODEID", "0"},
                     {"SLURM_TASKS_PER_NODE", "8(x2)"},
                     {"SLURM_JOB_ID", "7"}};
  EXPECT_THAT(ErrorOf(batch), HasSubstr("start the ranks with srun"));
}

TEST(SlurmLists, FirstHostKeepsZerosAndSuffixes) {
  using internal::FirstHost;
  EXPECT_EQ(FirstHost("login1"), "login1");
  EXPECT_EQ(FirstHost("a,b"), "a");
  EXPECT_EQ(FirstHost("gpu-[003-007,12],login1"), "gpu-003");
  EXPECT_EQ(FirstHost("rack[2,4]node[01-04]-ib"), "rack2node01-ib");
  EXPECT_EQ(FirstHost(""), std::nullopt);
  EXPECT_EQ(FirstHost("gpu-[1-2"), std::nullopt);
}

TEST(SlurmLists, TasksAreCountedThroughRepeats) {
  using internal::TasksOfNode;
  EXPECT_EQ(TasksOfNode("8(x3),4", 0), 8);
  EXPECT_EQ(TasksOfNode("8(x3),4", 2), 8);
  EXPECT_EQ(TasksOfNode("8(x3),4", 3), 4);
  EXPECT_EQ(TasksOfNode("8(x3),4", 4), std::nullopt);
  EXPECT_EQ(TasksOfNode("8(y3)", 1), std::nullopt);
  EXPECT_EQ(TasksOfNode("8(x3", 1), std::nullopt);
  EXPECT_EQ(TasksOfNode("", 0), std::nullopt);
}

TEST(RankEnvironment, TheProcessesVariablesAreAllThere) {
  EXPECT_FALSE(EnvironmentOfThisProcess().at("PATH").empty());
}

}  // namespace
}  // namespace isthmus::backend
