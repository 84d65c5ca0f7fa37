// What is recorded of ops on a device with a profiler and with copies beside compute.

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/torch/data/sample_batches.h"
#include "backend/torch/execute/executor.h"
#include "backend/torch/record/kernel_ops.h"
#include "backend/torch/record/measured_trace.h"
#include "backend/torch/record/step_recorder.h"
#include "plan/program/print.h"
#include "tests/support/program_jobs.h"
#include "tests/support/torch_ranks.h"
#include "tests/unit/backend_torch/fake_device.h"
#include "traces/trace_file.h"

namespace isthmus::backend {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kUs = 1'000'000;

plan::Module TinyLlm() {
  plan::Module llm = tests::Gpt("llm", 2, 32, 4, 64);
  llm.transformer.ffn_hidden = 64;
  llm.transformer.max_positions = 16;
  llm.settings.precision = plan::DType::kFp32;
  llm.layout = plan::Layout{};
  return llm;
}

plan::Program TinyProgram() {
  plan::Job job = tests::JobOf(plan::Placement::kHomogeneous, {TinyLlm()}, 2);
  job.workload.sequence_length = 16;
  return plan::Build(job);
}

/// Indices of the role's Compute ops.
std::vector<std::uint32_t> ComputeOps(const plan::Role& role) {
  std::vector<std::uint32_t> ops;
  for (std::uint32_t op = 0; op < role.ops.size(); ++op) {
    if (role.ops[op].kind == plan::OpKind::kCompute) ops.push_back(op);
  }
  return ops;
}

// Ops at 0-100 and 200-300 us.
class KernelOpsTest : public ::testing::Test {
 protected:
  std::vector<traces::KernelRun> Assign(const std::vector<KernelRecord>& kernels) {
    const std::vector<std::uint32_t> ops = ComputeOps(program_.roles[0]);
    const std::vector<traces::Event> events{
        {.op = ops[0], .start_ps = 0, .end_ps = 100 * kUs},
        {.op = ops[1], .start_ps = 200 * kUs, .end_ps = 300 * kUs}};
    first_ = ops[0];
    second_ = ops[1];
    return AssignKernels(program_.roles[0], events, kernels, names_);
  }

  plan::Program program_ = TinyProgram();
  std::uint32_t first_ = 0;
  std::uint32_t second_ = 0;
  KernelNames names_;
};

TEST_F(KernelOpsTest, AKernelBelongsToTheOpInWhoseTimeItsMiddleLies) {
  const auto runs = Assign({{"_Z3addv", 7, 10 * kUs, 20 * kUs},
                            {"_Z3addv", 7, 90 * kUs, 105 * kUs},
                            {"gemm", 7, 190 * kUs, 290 * kUs}});
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0].op, first_);
  EXPECT_EQ(runs[1].op, first_);  // 97.5 us
  EXPECT_EQ(runs[2].op, second_);
  EXPECT_EQ(runs[2].end_ps, 290 * kUs);
  EXPECT_THAT(names_.texts(), ElementsAre("add()", "gemm"));
}

// The profiler's clock is microseconds away from that of the marks.
TEST_F(KernelOpsTest, ClocksMayDifferALittle) {
  const auto runs = Assign({{"gemm", 7, 110 * kUs, 112 * kUs}, {"gemm", 7, 188 * kUs, 190 * kUs}});
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].op, first_);   // 11 us behind it
  EXPECT_EQ(runs[1].op, second_);  // 11 us in front of it
}

TEST_F(KernelOpsTest, CommunicationAndWhatRunsBetweenOpsIsLeftOut) {
  EXPECT_THAT(Assign({{"ncclDevKernel_AllReduce", 20, 10 * kUs, 20 * kUs},
                      {"gemm", 7, 150 * kUs, 151 * kUs}}),
              IsEmpty());
  EXPECT_THAT(AssignKernels(program_.roles[0], {}, {{"gemm", 7, 0, 1}}, names_), IsEmpty());
}

// The recorded step in a file: each Compute op with its kernels. Ops of the fake take a tick of
// 1 us each, the first from 0 to 1 us, the second from 2 to 3.
TEST(MeasuredTraceTest, HasTheKernelsOfEveryOpAndTheAllocatorsMemory) {
  const plan::Program program = TinyProgram();
  const std::string path = ::testing::TempDir() + "record_test.isthmus";
  std::vector<std::uint32_t> ops = ComputeOps(program.roles[0]);
  tests::RunOnRanks(program, [&](base::Rank rank, Communicators& communicators) {
    tests::FakeDevice device;
    device.kernels = {{"forward", 7, 100'000, 900'000}, {"backward", 7, 2'100'000, 2'900'000}};
    device.counted = {.peak_allocated_bytes = 5, .peak_reserved_bytes = 6, .capacity_bytes = 7};
    StepRecorder recorder(program.role(rank), rank, device);
    for (const std::uint32_t op : {ops[0], ops[1]}) {
      recorder.Begin(op);
      recorder.End(op);
    }
    recorder.EndStep();
    RecordedSteps recorded{.steps = recorder.TakeSteps(),
                           .kernel_names = recorder.kernel_names(),
                           .durations_ps = {3 * kUs},
                           .memory = device.memory()};
    WriteMeasuredTrace(program, recorded, {}, path, communicators.control());
  });
  const traces::Trace trace = traces::LoadTraceFile(path);
  EXPECT_THAT(trace.trailer.kernel_names, ElementsAre("forward", "backward"));
  ASSERT_EQ(trace.trailer.kernels.size(), 2U);
  EXPECT_EQ(trace.trailer.kernels[0].op, ops[0]);
  EXPECT_EQ(trace.trailer.kernels[0].start_ps, 100'000);
  EXPECT_EQ(trace.trailer.kernels[1].op, ops[1]);
  EXPECT_EQ(trace.trailer.kernels[1].name, 1U);
  ASSERT_EQ(trace.trailer.memory.size(), 1U);
  EXPECT_EQ(trace.trailer.memory[0].peak_bytes, 5);
  EXPECT_EQ(trace.trailer.memory[0].reserved_bytes, 6);
  EXPECT_EQ(trace.trailer.memory[0].capacity_bytes, 7);
}

plan::Program OffloadingProgram() {
  plan::Module encoder = tests::Encoder("vision", 2, 32, 4);
  encoder.transformer.ffn_hidden = 64;
  encoder.transformer.max_positions = 4;
  encoder.tokens_per_sample = encoder.llm_tokens_per_sample = 4;
  encoder.span_tokens = 4;
  encoder.input_width = 12;
  encoder.projector = plan::Projector{.num_layers = 1};
  encoder.layout = plan::Layout{};
  encoder.settings.precision = plan::DType::kFp32;
  encoder.settings.offload_parameters = true;
  plan::Job job = tests::JobOf(plan::Placement::kColocated, {encoder, TinyLlm()}, 2);
  job.workload.sequence_length = 16;
  return plan::Build(job);
}

std::vector<double> Losses(const plan::Program& program, Device& device) {
  std::vector<double> losses;
  tests::RunOnRanks(program, [&](base::Rank rank, Communicators& communicators) {
    SampleBatches data(program, MakeTask("random", ShapeOfSamples(program), {.seed = 1}));
    TrainingOptions training;
    training.learning_rate.peak = 0.01;
    Executor executor(program, rank, communicators, data, device, {.training = training});
    for (int step = 0; step < 3; ++step) losses.push_back(executor.RunStep(step).loss);
  });
  return losses;
}

// Copies run beside compute: weights that come back are zeros until somebody waits for them, so a
// missing wait changes what is trained.
TEST(OffloadTest, WhoeverUsesWeightsWaitsForTheirCopies) {
  const plan::Program program = OffloadingProgram();
  const std::unique_ptr<Device> cpu = MakeCpuDevice(std::chrono::seconds(20));
  tests::FakeDevice beside;
  EXPECT_EQ(Losses(program, beside), Losses(program, *cpu));
  EXPECT_THAT(beside.notes, Contains("to host"));
  EXPECT_THAT(beside.notes, Contains("from host"));
  EXPECT_THAT(beside.notes, Contains("wait for copies"));
}

TEST(RangesTest, EveryOpHasARangeOfItsName) {
  const plan::Program program = TinyProgram();
  tests::FakeDevice device;
  Losses(program, device);
  const std::size_t num_ops = program.roles[0].ops.size();
  ASSERT_EQ(device.notes.size(), 3 * 2 * num_ops);  // three steps
  for (std::size_t op = 0; op < num_ops; ++op) {
    EXPECT_EQ(device.notes[2 * op],
              "enter " + plan::Describe(program, program.roles[0], program.roles[0].ops[op]));
    EXPECT_EQ(device.notes[2 * op + 1], "leave");
  }
}

}  // namespace
}  // namespace isthmus::backend
