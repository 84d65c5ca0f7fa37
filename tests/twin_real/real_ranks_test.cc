#include <filesystem>
#include <map>
#include <ostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/torch/data/sample_batches.h"
#include "backend/torch/device/device.h"
#include "backend/torch/execute/executor.h"
#include "backend/torch/record/measured_trace.h"
#include "backend/torch/record/step_recorder.h"
#include "tests/support/torch/parity.h"
#include "tests/support/torch/parity_jobs.h"
#include "tests/support/torch/recording_backend.h"
#include "tests/support/torch_ranks.h"
#include "tests/twin_real/planned_calls.h"
#include "traces/check_measured.h"
#include "traces/trace_file.h"

// Whole programs on real ranks: what c10d was asked for is what the program says, and what was
// measured obeys the program's dependencies.
namespace isthmus::tests {
namespace {

using plan::Placement;

constexpr int kSteps = 2;
constexpr auto kTimeout = std::chrono::seconds(60);

struct RealJob {
  std::string name;
  plan::Job job;
  /// What ctest shows, in the place of bytes.
  friend void PrintTo(const RealJob& real, std::ostream* out) { *out << real.name; }
};

struct RealRun {
  std::vector<std::vector<C10dCall>> calls;  // by rank; those of the program's ops
  traces::Trace trace;                       // of the last step
};

/// Trains two steps on thread-ranks, with both recorders on.
RealRun RunRecorded(const plan::Program& program) {
  const auto path = std::filesystem::path(testing::TempDir()) /
                    fmt::format("twin_real_{:x}.isthmus", plan::Hash(program));
  RealRun run;
  run.calls.resize(static_cast<std::size_t>(program.num_ranks));
  RunOnThreads(program.num_ranks, [&](base::Rank rank, const auto& store) {
    C10dLog log;
    RecordingFactory factory(rank, log, kTimeout);
    const std::unique_ptr<backend::Device> device = backend::MakeCpuDevice(kTimeout);
    backend::Communicators communicators(program, rank, store, factory);
    backend::SampleBatches data(
        program, backend::MakeTask("captions", backend::ShapeOfSamples(program), {.seed = 11}));
    backend::StepRecorder recorder(program.role(rank), rank, *device);
    backend::Executor executor(program, rank, communicators, data, *device,
                               {.training = ParityTraining(),
                                .before_op = [&log](std::uint32_t op) { log.op = op; },
                                .recorder = &recorder});
    backend::RecordedSteps recorded{.steps = {}, .num_warmup_steps = kSteps - 1};
    recorded.node = backend::AgreeOnClock(*device, communicators.control());
    log.calls.clear();
    for (int step = 0; step < kSteps; ++step) {
      executor.RunStep(step);
      recorder.EndStep();
      recorded.durations_ps.push_back(1);
    }
    // Behind the last op come the sums for those who watch.
    std::erase_if(log.calls,
                  [&](const C10dCall& call) { return call.op == program.role(rank).ops.size(); });
    run.calls[rank.index()] = log.calls;
    recorded.steps = recorder.TakeSteps();
    backend::WriteMeasuredTrace(program, recorded, {}, path.string(), communicators.control());
  });
  run.trace = traces::LoadTraceFile(path.string());
  std::filesystem::remove(path);
  return run;
}

std::string Line(const C10dCall& call) {
  std::vector<int> members;
  for (const base::Rank member : call.members) members.push_back(member.value());
  return fmt::format("op {}: {} of {} B over {}{}", call.op, call.kind, call.bytes, members,
                     call.peer < 0 ? "" : fmt::format(" with {}", call.peer));
}

/// Calls of a rank against those of its program, step by step; the first that differs is shown.
void ExpectPlannedCalls(const std::vector<PlannedCall>& planned, const std::vector<C10dCall>& calls,
                        base::Rank rank) {
  ASSERT_GT(planned.size(), 0U);
  EXPECT_EQ(calls.size(), planned.size() * kSteps) << "rank " << rank.value();
  for (std::size_t at = 0; at < std::min(calls.size(), planned.size() * kSteps); ++at) {
    ASSERT_EQ(Line(calls[at]), Line(planned[at % planned.size()].call))
        << "call " << at << " of rank " << rank.value();
  }
}

/// One communicator of c10d for each that the program names, the same on all its members.
class Naming {
 public:
  void Add(const std::vector<PlannedCall>& planned, const std::vector<C10dCall>& calls) {
    for (std::size_t at = 0; at < calls.size(); ++at) {
      const C10dCall& call = calls[at];
      const std::string& name = planned[at % planned.size()].communicator;
      EXPECT_EQ(numbers_.try_emplace({name, call.members}, call.number).first->second, call.number)
          << name;
      EXPECT_EQ(names_.try_emplace({call.members, call.number}, name).first->second, name);
    }
  }

 private:
  std::map<std::pair<std::string, std::vector<base::Rank>>, int> numbers_;
  std::map<std::pair<std::vector<base::Rank>, int>, std::string> names_;
};

/// Members of a communicator make the same calls in the same order; what one rank sends to another
/// is what that one asks for.
void ExpectAgreement(const std::vector<std::vector<C10dCall>>& calls) {
  std::map<std::pair<std::vector<base::Rank>, int>, std::map<int, std::vector<std::string>>> met;
  std::map<std::tuple<std::vector<base::Rank>, int, int, int>, std::vector<std::int64_t>> sent;
  auto received = sent;
  for (int rank = 0; rank < static_cast<int>(calls.size()); ++rank) {
    for (const C10dCall& call : calls[static_cast<std::size_t>(rank)]) {
      if (call.kind == "send") {
        sent[{call.members, call.number, rank, call.peer}].push_back(call.bytes);
      } else if (call.kind == "receive") {
        received[{call.members, call.number, call.peer, rank}].push_back(call.bytes);
      } else {
        // Shares of an all-to-all-v are each member's own.
        const std::int64_t bytes = call.kind == "all_to_all_v" ? 0 : call.bytes;
        met[{call.members, call.number}][rank].push_back(fmt::format("{} {}", call.kind, bytes));
      }
    }
  }
  EXPECT_EQ(sent, received);
  for (const auto& [communicator, sequences] : met) {
    EXPECT_EQ(sequences.size(), communicator.first.size());
    for (const auto& [rank, sequence] : sequences) {
      EXPECT_EQ(sequence, sequences.begin()->second) << "rank " << rank;
    }
  }
}

std::vector<std::string> TextsOf(const std::vector<traces::MeasuredProblem>& problems) {
  std::vector<std::string> texts;
  for (const traces::MeasuredProblem& problem : problems) {
    texts.push_back(fmt::format("{}: {}", traces::ToText(problem.kind), problem.text));
  }
  return texts;
}

class RealTwin : public testing::TestWithParam<RealJob> {};

TEST_P(RealTwin, CallsAndTimesObeyTheProgram) {
  const plan::Program program = plan::Build(GetParam().job);
  const RealRun run = RunRecorded(program);
  Naming naming;
  for (int index = 0; index < program.num_ranks; ++index) {
    const base::Rank rank{index};
    const std::vector<PlannedCall> planned = PlanCalls(program, rank);
    const std::vector<C10dCall>& calls = run.calls[rank.index()];
    ExpectPlannedCalls(planned, calls, rank);
    if (HasFatalFailure()) return;
    naming.Add(planned, calls);
  }
  ExpectAgreement(run.calls);
  EXPECT_THAT(TextsOf(traces::CheckMeasured(run.trace)), testing::IsEmpty());
}

plan::Job Bf16(Placement placement, std::vector<plan::Module> modules) {
  return ParityJob(placement, std::move(modules), plan::DType::kBf16);
}

plan::Job Interleaved() {
  plan::Job job =
      Bf16(Placement::kHomogeneous, {TinyEncoder("vision"), TinyLlm({.pp = 2, .vpp = 2})});
  job.modules[1].transformer.num_layers = 4;
  job.modules[1].transformer.tied_embeddings = true;
  return job;
}

plan::Job TwoInstances() {
  plan::Job job =
      Bf16(Placement::kColocated, {TinyEncoder("vision", {.dp = 4}), TinyLlm({.dp = 4})});
  for (plan::Module& module : job.modules) module.settings.optimizer_instances = 2;
  return job;
}

plan::Job RecomputedAndOffloaded() {
  plan::Job job = Bf16(Placement::kColocated,
                       {TinyEncoder("vision", {.dp = 4}), TinyLlama({.tp = 2, .pp = 2})});
  for (plan::Module& module : job.modules) module.settings.recompute = plan::Recompute::kFull;
  job.modules[0].settings.offload_parameters = true;
  return job;
}

std::vector<RealJob> RealJobs() {
  using enum Placement;
  const auto encoder = [](const plan::Layout& layout) { return TinyEncoder("vision", layout); };
  return {
      {"HomogeneousTp", Bf16(kHomogeneous, {TinyEncoder("vision"), TinyLlm({.tp = 4})})},
      {"HomogeneousCp", Bf16(kHomogeneous, {TinyEncoder("vision"), TinyLlm({.cp = 2, .dp = 2})})},
      {"Interleaved", Interleaved()},
      {"ThreePhasePp2", Bf16(kColocated, {encoder({.dp = 4}), TinyLlm({.pp = 2, .dp = 2})})},
      {"StraddlingPp2",
       Bf16(kColocated, {encoder({.tp = 2, .dp = 2}), TinyLlm({.pp = 2, .dp = 2})})},
      {"ColocatedFanOut", Bf16(kColocated, {encoder({.tp = 4}), TinyLlm({.tp = 2, .dp = 2})})},
      {"ColocatedCp", Bf16(kColocated, {encoder({.dp = 4}), TinyLlm({.tp = 2, .cp = 2})})},
      {"RecomputedAndOffloaded", RecomputedAndOffloaded()},
      {"TwoInstances", TwoInstances()},
      {"ApartFanIn", Bf16(kNonColocated, {encoder({.dp = 4}), TinyLlm({.dp = 2})})},
      {"ApartUneven", Bf16(kNonColocated, {encoder({.dp = 3}), TinyLlm({.tp = 2, .dp = 2})})},
      {"ColocatedUnevenSamples",
       WithCounts(Bf16(kColocated, {encoder({.cp = 2, .dp = 2}), TinyLlm({.pp = 2, .dp = 2})}),
                  {2, 0, 0, 0})},
      {"ApartUnevenSamples",
       WithCounts(Bf16(kNonColocated, {encoder({.tp = 2}), TinyLlm({.cp = 2})}), {2, 0, 1})},
      {"ApartCpPp", Bf16(kNonColocated, {encoder({.tp = 2}), TinyLlm({.cp = 2, .pp = 2})})},
  };
}

std::string NameOf(const testing::TestParamInfo<RealJob>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Jobs, RealTwin, testing::ValuesIn(RealJobs()), NameOf);

}  // namespace
}  // namespace isthmus::tests
