#include "studies/run_case.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file_io.h"
#include "scenarios/scenario.h"

namespace isthmus::studies {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// All cases of a file of tests/data by row id.
std::map<std::string, RunCase> CasesOf(const std::string& file) {
  const CsvTable table = ReadCsv(std::string(ISTHMUS_SOURCE_DIR "/tests/data/") + file);
  const RunsKind kind = DetectKind(table);
  std::map<std::string, RunCase> cases;
  for (std::size_t index = 0; index < table.rows.size(); ++index) {
    RunCase run = MakeCase(RunsRow(table, index), kind, scenarios::DefaultSearchPaths());
    cases[run.row_id] = std::move(run);
  }
  return cases;
}

const std::map<std::string, RunCase>& Training() {
  static const auto cases = CasesOf("training_runs_sample.csv");
  return cases;
}
const std::map<std::string, RunCase>& Paper() {
  static const auto cases = CasesOf("paper_runs.csv");
  return cases;
}

const scenarios::ModuleSpec& Module(const RunCase& run, const std::string& name) {
  for (const scenarios::ModuleSpec& module : run.spec->modules) {
    if (module.name == name) return module;
  }
  throw std::logic_error("no module " + name);
}

TEST(TrainingCaseTest, AVendorRecipeGetsItsDefaultsAndSaysSo) {
  const RunCase& run = Training().at("T1192");
  EXPECT_EQ(run.why, "");
  EXPECT_DOUBLE_EQ(*run.measured_step_time_s, 12.27);
  const scenarios::ScenarioSpec& spec = *run.spec;
  EXPECT_EQ(spec.cluster_preset, "h100-dgx");
  EXPECT_EQ(spec.num_gpus, 8);
  EXPECT_EQ(spec.workload.global_batch, 128);
  EXPECT_EQ(spec.workload.microbatch_size, 1);
  const scenarios::ModuleSpec& llm = Module(run, "llm");
  EXPECT_TRUE(llm.model.gated_mlp);
  EXPECT_FALSE(llm.model.tied_embeddings);
  EXPECT_EQ(llm.layout.cp, 2);
  EXPECT_EQ(llm.settings.gradient_dtype, plan::DType::kBf16);
  EXPECT_EQ(llm.settings.attention, plan::AttentionKernel::kCudnn);
  EXPECT_EQ(spec.framework->name, "nemo-25.04");
  EXPECT_EQ(run.release, "NeMo 25.04");
  EXPECT_THAT(
      spec.assumptions,
      Contains("gradient_dtype bf16: bf16 gradients, as vendor recipes have them (assumed)"));
}

TEST(TrainingCaseTest, WhatARowLeavesOpenIsListedWithItsOtherValue) {
  const RunCase& run = Training().at("T1192");
  ASSERT_EQ(run.alternatives.size(), 2U);
  EXPECT_EQ(run.alternatives[0].what, "fp32 gradients");
  EXPECT_EQ(run.alternatives[0].use, AlternativeUse::kOpen);
  EXPECT_EQ(run.alternatives[0].spec.modules[0].settings.gradient_dtype, plan::DType::kFp32);
  EXPECT_EQ(run.alternatives[1].what, "FlashAttention-2 attention");
  EXPECT_EQ(run.alternatives[1].use, AlternativeUse::kSettled);  // the release's code decides
  EXPECT_FALSE(run.strict_spec);
}

TEST(TrainingCaseTest, AnAttentionChosenAfterSeeingRunsIsNotInTheStrictVariant) {
  const RunCase& run = Training().at("T0298");  // NeMo 24.07
  EXPECT_EQ(run.spec->framework->name, "nemo-24.07");
  EXPECT_EQ(Module(run, "llm").settings.attention, plan::AttentionKernel::kFlash2);
  ASSERT_TRUE(run.strict_spec);
  EXPECT_EQ(run.strict_spec->modules[0].settings.attention, plan::AttentionKernel::kCudnn);
}

TEST(TrainingCaseTest, PackingOfFineTuningIsMarkedAndNotInTheStrictVariant) {
  const auto cases = CasesOf("accuracy_gate.csv");
  const RunCase& run = cases.at("T0050");  // Megatron-Bridge, SFT of sequences of 4096 tokens
  EXPECT_EQ(run.spec->workload.document_tokens, 256);
  EXPECT_THAT(run.spec->assumptions,
              Contains(AllOf(StartsWith("sequences packed of documents of 256 tokens"),
                             HasSubstr("(chosen_after_seeing_runs)"))));
  ASSERT_TRUE(run.strict_spec);
  EXPECT_FALSE(run.strict_spec->workload.document_tokens);
}

TEST(TrainingCaseTest, RowsOfOneRecipeDifferInGpusAndBatchOnly) {
  EXPECT_EQ(Training().at("T1192").recipe, Training().at("T1196").recipe);
  EXPECT_NE(Training().at("T1192").layout, Training().at("T1196").layout);
  EXPECT_NE(Training().at("T1192").recipe, Training().at("T1274").recipe);
}

TEST(TrainingCaseTest, MegatronBridgeKeepsFp32Gradients) {
  const scenarios::ModuleSpec& llm = Module(Training().at("T0941"), "llm");
  EXPECT_EQ(llm.settings.gradient_dtype, plan::DType::kFp32);
}

TEST(TrainingCaseTest, TensorParallelNeMoOverlapsThroughUserBuffers) {
  const RunCase& run = Training().at("T1274");
  const scenarios::ModuleSpec& llm = Module(run, "llm");
  EXPECT_EQ(llm.layout.tp, 2);
  EXPECT_EQ(llm.settings.tp_overlap, plan::TpOverlap::kUserBuffers);
  EXPECT_TRUE(llm.settings.sequence_parallel);
  EXPECT_FALSE(llm.model.gated_mlp);  // squared ReLU
}

TEST(TrainingCaseTest, AMicrobatchThatIsNotStatedIsARangeWithTwoEnds) {
  const RunCase& run = Training().at("T1640");
  EXPECT_EQ(run.spec->workload.microbatch_size, 1);
  EXPECT_THAT(run.spec->assumptions,
              Contains("the microbatch is not stated: the midpoint between 1 and 4 samples is the "
                       "prediction"));
  const auto found =
      std::ranges::find(run.alternatives, AlternativeUse::kMidpoint, &Alternative::use);
  ASSERT_NE(found, run.alternatives.end());
  EXPECT_EQ(found->spec.workload.microbatch_size, 4);
}

TEST(TrainingCaseTest, MegatronOf2022RunsUnfusedAttentionOnA100) {
  const RunCase& run = Training().at("T0662");
  EXPECT_EQ(run.spec->cluster_preset, "a100-dgx");
  const plan::ModuleSettings& settings = Module(run, "llm").settings;
  EXPECT_EQ(settings.attention, plan::AttentionKernel::kUnfused);
  EXPECT_EQ(settings.tp_overlap, plan::TpOverlap::kBulk);
  EXPECT_EQ(settings.recompute, plan::Recompute::kFull);
  EXPECT_EQ(settings.precision, plan::DType::kFp16);
  EXPECT_FALSE(settings.sequence_parallel);
}

TEST(TrainingCaseTest, ChunksAndDeferredGradientsAreTaken) {
  const RunCase& run = Training().at("T1003");  // "…, defer_embedding_wgrad(22)"
  EXPECT_EQ(run.why, "");
  EXPECT_EQ(Module(run, "llm").layout.vpp, 5);
  EXPECT_EQ(run.spec->schedule.defer_embedding_wgrad, 22);
  // A recipe of NeMo 25.04 with a pipeline and without flags: its default, not in the strict
  // variant.
  EXPECT_EQ(Training().at("T1202").spec->schedule.defer_embedding_wgrad, 50);
  EXPECT_EQ(Training().at("T1202").strict_spec->schedule.defer_embedding_wgrad, 0);
}

TEST(TrainingCaseTest, WhatIsNotBuiltIsSkippedWithItsReason) {
  const std::map<std::string, std::string> reasons = {
      {"T0454", "FSDP and ZeRO-2 or -3 are known but not built yet"},
      {"T1404", "mixture of experts is known but not built yet"},
      {"T0055", "LoRA is known but not built yet"},
      {"T1767", "cells that nothing can fill are empty: TP, PP"},
  };
  for (const auto& [id, why] : reasons) {
    EXPECT_EQ(Training().at(id).why, why) << id;
    EXPECT_FALSE(Training().at(id).spec) << id;
  }
}

TEST(MemoryCaseTest, TheTotalPeakOf1F1BIsTakenAndOtherSchedulesAreNot) {
  const auto cases = CasesOf("memory_points_sample.csv");
  const RunCase& run = cases.at("M0856");
  EXPECT_EQ(run.why, "");
  EXPECT_DOUBLE_EQ(*run.measured_memory_gib, 30.0);  // this source's GB are GiB
  EXPECT_FALSE(run.measured_step_time_s);
  EXPECT_EQ(Module(run, "llm").settings.attention, plan::AttentionKernel::kUnfused);
  // 22 layers on 8 stages: 24 less one at each end, as plan splits them by itself.
  EXPECT_THAT(Module(run, "llm").layout.stage_layers, IsEmpty());
  EXPECT_THAT(run.spec->assumptions, Contains(HasSubstr("have a layer less")));
  // 22 layers and the two ends on 8 stages: three chunks of one layer each.
  EXPECT_EQ(cases.at("M0857").spec->modules.front().layout.vpp, 3);
  EXPECT_EQ(cases.at("M0858").why, "schedule ZB-2p is known but not built yet");
  EXPECT_EQ(cases.at("M0873").why, "FSDP and ZeRO-2 or -3 are known but not built yet");
  EXPECT_EQ(cases.at("M0231").why, "an analytic figure, not a measurement");
}

TEST(PaperCaseTest, EveryRowOfTheThreeTablesBecomesAScenario) {
  EXPECT_EQ(Paper().size(), 72U);
  for (const auto& [id, run] : Paper()) {
    EXPECT_TRUE(run.spec) << id << ": " << run.why;
    EXPECT_TRUE(run.measured_step_time_s) << id;
    EXPECT_TRUE(run.measured_memory_gib) << id;
    EXPECT_THAT(run.table, AnyOf("A2", "A3", "A4"));
  }
}

TEST(PaperCaseTest, TheStrictVariantIsWithoutWhatStepTimesDecided) {
  const RunCase& run = Paper().at("A3.8.H");  // 128K: recomputed encoder, cp in the LLM
  ASSERT_TRUE(run.strict_spec);
  const scenarios::ScenarioSpec& strict = *run.strict_spec;
  EXPECT_EQ(run.spec->framework->name, "megatron-core-library");
  EXPECT_EQ(strict.framework->name, "megatron-core");
  EXPECT_EQ(Module(run, "vision").settings.backward, plan::BackwardMode::kAbsent);
  EXPECT_EQ(strict.modules[0].settings.backward, plan::BackwardMode::kReal);
  EXPECT_EQ(strict.modules[0].settings.recompute, plan::Recompute::kFull);
  EXPECT_EQ(Module(run, "llm").settings.cp_attention, plan::CpAttention::kVariableLength);
  EXPECT_EQ(strict.modules[1].settings.cp_attention, plan::CpAttention::kFixedLength);
  const auto marked = [](const scenarios::ScenarioSpec& spec) {
    return std::ranges::count_if(spec.assumptions, [](const std::string& text) {
      return text.find("(chosen_after_seeing_runs)") != std::string::npos;
    });
  };
  EXPECT_EQ(marked(*run.spec), 3);
  EXPECT_EQ(marked(strict), 0);
  EXPECT_NO_THROW(scenarios::ParseScenario(strict));
}

TEST(PaperCaseTest, HomogeneousRowsInheritTheLayout) {
  const RunCase& run = Paper().at("A2.1.H");
  EXPECT_EQ(run.workload, "A2.1");
  EXPECT_EQ(run.mode, "H");
  const scenarios::ModuleSpec& vision = Module(run, "vision");
  EXPECT_TRUE(vision.inherits_layout);
  EXPECT_EQ(vision.model_preset, "vit-1b");
  EXPECT_FALSE(vision.settings.sequence_parallel);
  EXPECT_EQ(vision.settings.recompute, plan::Recompute::kFull);
  EXPECT_EQ(vision.settings.backward, plan::BackwardMode::kAbsent);
  EXPECT_EQ(vision.tokens_per_image, 1024);
  EXPECT_EQ(run.spec->workload.microbatch_size, 2);  // the 14B homogeneous rows of A2
  EXPECT_EQ(Module(run, "llm").settings.tp_overlap, plan::TpOverlap::kBulk);
  EXPECT_EQ(Module(run, "llm").settings.gradient_dtype, plan::DType::kBf16);
  EXPECT_EQ(Paper().at("A2.1.C").spec->workload.microbatch_size, 1);
}

TEST(PaperCaseTest, ColocatedRowsHaveTwoLayoutsOnTheSameRanks) {
  const RunCase& run = Paper().at("A2.13.C");
  const scenarios::ModuleSpec& vision = Module(run, "vision");
  EXPECT_EQ(vision.layout.tp, 1);
  EXPECT_EQ(vision.layout.dp, 256);
  EXPECT_EQ(vision.layout.first_rank, 0);
  // 3B with 70B has images of 768 tokens, which fill 6144 tokens but not 4096.
  EXPECT_EQ(vision.tokens_per_image, 1024);
  EXPECT_EQ(Module(Paper().at("A2.14.C"), "vision").tokens_per_image, 768);
  EXPECT_EQ(vision.settings.optimizer_instances, 4);
  EXPECT_TRUE(vision.settings.offload_parameters);  // the LLM has two stages
  EXPECT_FALSE(Module(Paper().at("A3.6.C"), "vision").settings.offload_parameters);
  EXPECT_DOUBLE_EQ(*run.measured_gain_pct, 13.9);
}

TEST(PaperCaseTest, IslandsComeAfterTheRanksOfTheLlm) {
  const RunCase& run = Paper().at("A4.13.NC");
  EXPECT_EQ(run.spec->num_gpus, 264);
  EXPECT_EQ(Module(run, "llm").layout.first_rank, 0);
  EXPECT_EQ(Module(run, "vision").layout.first_rank, 256);
  EXPECT_EQ(Module(run, "vision").layout.tp, 2);
  EXPECT_DOUBLE_EQ(*run.measured_gain_pct, 12.7);
}

TEST(PaperCaseTest, TheLongContextTableCountsForwardAndBackward) {
  const RunCase& at_64k = Paper().at("A3.6.H");
  EXPECT_EQ(at_64k.spec->step.metric, scenarios::StepMetric::kForwardBackward);
  EXPECT_DOUBLE_EQ(*at_64k.measured_step_time_s, 4.457);
  EXPECT_EQ(Module(at_64k, "vision").settings.recompute, plan::Recompute::kNone);
  const RunCase& at_128k = Paper().at("A3.8.H");
  EXPECT_EQ(Module(at_128k, "vision").settings.recompute, plan::Recompute::kFull);
  EXPECT_EQ(Paper().at("A2.1.H").spec->step.metric, scenarios::StepMetric::kFull);
}

TEST(PaperCaseTest, OnParIsReadFromTheTimes) {
  // 14210 / 14380 - 1 = -1.2 %.
  EXPECT_DOUBLE_EQ(*Paper().at("A2.7.C").measured_gain_pct, -1.2);
}

TEST(PaperCaseTest, LayersAreEvenAt8KInOneLayoutAndBalancedElsewhere) {
  EXPECT_EQ(Module(Paper().at("A4.12.H"), "llm").layout.split, scenarios::LayerSplit::kEven);
  EXPECT_EQ(Module(Paper().at("A4.12.NC"), "llm").layout.split, scenarios::LayerSplit::kSearch);
  EXPECT_EQ(Module(Paper().at("A4.15.H"), "llm").layout.split, scenarios::LayerSplit::kSearch);
  EXPECT_THAT(Paper().at("A4.15.H").spec->assumptions,
              Contains(StartsWith("layers per stage balanced")));
}

// scenarios/paper is made by scripts/make_paper_scenarios.sh from the same rows.
TEST(PaperCaseTest, ShippedScenariosAreWhatTheRowsGive) {
  for (const auto& [id, run] : Paper()) {
    const std::string path =
        ISTHMUS_SOURCE_DIR "/scenarios/paper/" + run.table + "/" + id + ".yaml";
    EXPECT_EQ(base::ReadFile(path), scenarios::WriteScenario(*run.spec))
        << "run scripts/make_paper_scenarios.sh";
  }
}

TEST(PaperCaseTest, WrittenScenariosLoadAsWhatTheyWere) {
  for (const char* id : {"A2.1.H", "A2.13.C", "A3.6.H", "A4.15.H", "A4.13.NC"}) {
    const scenarios::ScenarioSpec& spec = *Paper().at(id).spec;
    const std::string path =
        ISTHMUS_SOURCE_DIR "/scenarios/paper/" + std::string(id).substr(0, 2) + "/" + id + ".yaml";
    EXPECT_EQ(scenarios::LoadScenario(path).hash, scenarios::ParseScenario(spec).hash) << id;
  }
}

// What is said of a small row with one cell changed: why it is skipped, or the mistake.
std::string MessageOf(const std::string& column, const std::string& cell) {
  const std::vector<std::pair<std::string, std::string>> cells = {
      {"row_id", "a"},    {"gpu", "H100"}, {"n_gpus", "8"},        {"layers", "32"},
      {"hidden", "4096"}, {"heads", "32"}, {"seq_len", "4096"},    {"GBS", "64"},
      {"TP", "2"},        {"PP", "2"},     {"VPP", "1"},           {"step_time_s", "3.0"},
      {"recompute", ""},  {"MBS", "1"},    {"seq_parallel", "no"}, {"ffn_hidden", "11008"},
      {"vocab", "32000"}};
  std::string names;
  std::string values;
  for (const auto& [name, value] : cells) {
    names += (names.empty() ? "" : ",") + name;
    values += (values.empty() ? "" : ",") + (name == column ? cell : value);
  }
  const CsvTable table = ParseCsv(names + "\n" + values + "\n", "runs.csv");
  try {
    return MakeTrainingCase(RunsRow(table, 0), RunsKind::kTrainingRuns).why;
  } catch (const base::Error& error) {
    return error.what();
  }
}

TEST(TrainingCaseTest, CellsThatNoRunCanHaveAreRefusedAndUnknownWordsSkipped) {
  EXPECT_EQ(MessageOf("", ""), "");
  EXPECT_EQ(MessageOf("recompute", "Full"), "");
  EXPECT_THAT(MessageOf("PP", "0"), HasSubstr("runs.csv:2:31: error: column PP: '0'"));
  EXPECT_THAT(MessageOf("VPP", "0"), HasSubstr("a whole number above 0"));
  EXPECT_THAT(MessageOf("step_time_s", "0"), HasSubstr("above 0"));
  EXPECT_THAT(MessageOf("recompute", "maybe"), HasSubstr("none, selective, full"));
  EXPECT_THAT(MessageOf("seq_parallel", "maybe"), HasSubstr("yes, no"));
  EXPECT_THAT(MessageOf("gpu", "TPU"), HasSubstr("no profile of GPU TPU"));
}

}  // namespace
}  // namespace isthmus::studies
