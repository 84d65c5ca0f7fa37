// Samples with different numbers of images in simulated time: lanes take what their images take.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/program_jobs.h"
#include "tests/unit/sim/tiny_program.h"

namespace isthmus::sim {
namespace {

constexpr std::int64_t kEncodePs = 1000;  // of an image, forward; backward twice that
constexpr std::int64_t kLlmPs = 500;      // of a microbatch, forward and backward each
constexpr std::int64_t kHopPs = 100;

/// Messages take as long as said, collectives nothing.
class Hops : public CollectiveModel {
 public:
  base::Seconds Time(plan::CollectiveKind, base::Bytes,
                     const topology::GroupLocality&) const override {
    return base::Seconds{0};
  }
  base::Seconds P2P(base::Bytes, const topology::Route&) const override {
    return base::Seconds(static_cast<double>(kHopPs) * 1e-12);
  }
  base::Seconds Copy(base::Bytes, plan::CopyDirection, const topology::Route&) const override {
    return base::Seconds{0};
  }
};

/// An encoder of one op a microbatch (module 0) and an LLM (module 1) with images as counted.
plan::Job JobOf(plan::Placement placement, const plan::Layout& encoder, const plan::Layout& llm,
                int num_microbatches, std::vector<std::int32_t> counts) {
  plan::Job job = tests::JobOf(placement, {tests::EncoderOf("vision", encoder), tests::LlmOf(llm)},
                               num_microbatches);
  job.optimizer.overlap_grad_reduce = false;
  job.optimizer.overlap_param_gather = false;
  plan::Module& vision = job.modules.front();
  const std::int64_t most = *std::max_element(counts.begin(), counts.end());
  vision.tokens_per_sample = vision.llm_tokens_per_sample = most * vision.span_tokens;
  vision.spans_of_sample = std::move(counts);
  return job;
}

/// The program with given times: a work's is that of its images, by its tokens.
plan::Program Timed(const plan::Job& job) {
  plan::Program program = plan::Build(job);
  for (int index = 0; index < program.num_ranks; ++index) {
    const base::Rank rank{index};
    for (const plan::Op& op : program.role(rank).ops) {
      if (op.kind != plan::OpKind::kCompute && op.kind != plan::OpKind::kOptimizer) continue;
      plan::Work& work = program.works[program.table(rank).works[op.size]];
      std::int64_t duration = op.kind == plan::OpKind::kCompute ? kLlmPs : 0;
      if (op.kind == plan::OpKind::kCompute && op.module == 0) {
        if (work.parts.empty()) continue;
        const bool forward = op.action() == plan::Action::kForward;
        const std::size_t at = work.name.rfind(' ');
        duration = std::stol(work.name.substr(at)) / 96 * kEncodePs * (forward ? 1 : 2);
      }
      work.parts = GivenWork(duration).parts;
    }
  }
  return program;
}

/// Times of a rank's computes of a module, in order: start and end.
std::vector<std::pair<std::int64_t, std::int64_t>> Computes(const TinyRun& run, std::uint32_t rank,
                                                            int module) {
  std::vector<std::pair<std::int64_t, std::int64_t>> times;
  const std::vector<plan::Op>& ops = run.lowered.role(rank).ops;
  for (std::size_t op = 0; op < ops.size(); ++op) {
    if (ops[op].kind != plan::OpKind::kCompute || ops[op].module != module) continue;
    times.emplace_back(run.result.times[rank].start_ps[op], run.result.times[rank].end_ps[op]);
  }
  return times;
}

using Times = std::vector<std::pair<std::int64_t, std::int64_t>>;

// Two lanes with three images and one, each with its own LLM shard: 3·1000, then 500 + 500, then
// 3·2000 on the longer one. The other is done after 1000 + 1000 + 2000 and waits for the token
// count.
TEST(UnevenSamples, TheStepWaitsForTheLaneWithMostImages) {
  const plan::Program uneven =
      Timed(JobOf(plan::Placement::kColocated, {.dp = 2}, {.dp = 2}, 1, {3, 1}));
  const TinyRun run = RunGiven(uneven, {}, false, Hops());
  EXPECT_EQ(Computes(run, 0, 0), (Times{{0, 3000}, {4000, 10000}}));
  EXPECT_EQ(Computes(run, 1, 0), (Times{{0, 1000}, {2000, 4000}}));
  EXPECT_EQ(run.result.step_end_ps.front(), 10000);
  const plan::Program even =
      Timed(JobOf(plan::Placement::kColocated, {.dp = 2}, {.dp = 2}, 1, {2, 2}));
  EXPECT_EQ(RunGiven(even, {}, false, Hops()).result.step_end_ps.front(), 7000);
}

// Encoder on rank 0, LLM on rank 1, images in microbatches 0 and 2. The LLM gets the first at 1100
// and is through with it at 2100; microbatch 1 has no message to wait for and ends at 3100, while
// the gradient of microbatch 0 came to the encoder at 2200 and its backward ends at 4200. Then the
// third: 1000 forward, 100 to the LLM, 500 + 500, 100 back, 2000 backward: 8400.
TEST(UnevenSamples, ATextOnlyMicrobatchCostsTheEncoderNothingAndNoMessage) {
  const plan::Program program = Timed(JobOf(plan::Placement::kNonColocated, {}, {}, 3, {1, 0, 1}));
  const TinyRun run = RunGiven(program, {}, false, Hops());
  ASSERT_FALSE(run.result.deadlock);
  EXPECT_EQ(
      Computes(run, 1, 1),
      (Times{{1100, 1600}, {1600, 2100}, {2100, 2600}, {2600, 3100}, {5300, 5800}, {5800, 6300}}));
  Times encoder = Computes(run, 0, 0);
  std::erase_if(encoder, [](const auto& times) { return times.first == times.second; });
  EXPECT_EQ(encoder, (Times{{0, 1000}, {2200, 4200}, {4200, 5200}, {6400, 8400}}));
  // Two messages each way; each is recorded on both ranks.
  EXPECT_EQ(std::count_if(run.events.begin(), run.events.end(),
                          [](const traces::Event& event) { return event.inner > 0; }),
            8);
}

}  // namespace
}  // namespace isthmus::sim
