// The 1F1B schedule in simulated time: whole jobs, built and lowered as ever, with given times.

#include <algorithm>
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/model_catalogue.h"
#include "tests/unit/sim/cost_profiles.h"
#include "tests/unit/sim/tiny_program.h"

namespace isthmus::sim {
namespace {

/// A message takes as long as said, whatever its size; collectives and copies take nothing.
class GivenHop : public CollectiveModel {
 public:
  explicit GivenHop(std::int64_t hop_ps) : hop_ps_(hop_ps) {}
  base::Seconds Time(plan::CollectiveKind, base::Bytes,
                     const topology::GroupLocality&) const override {
    return base::Seconds{0};
  }
  base::Seconds P2P(base::Bytes, const topology::Route&) const override {
    return base::Seconds(static_cast<double>(hop_ps_) * 1e-12);
  }
  base::Seconds Copy(base::Bytes, plan::CopyDirection, const topology::Route&) const override {
    return base::Seconds{0};
  }

 private:
  std::int64_t hop_ps_;
};

struct StageTimes {
  std::int64_t forward_ps = 0;
  std::int64_t backward_ps = 0;
  std::int64_t hop_ps = 0;
};

/// A GPT with a layer per virtual stage whose forwards, backwards and messages take the given
/// times.
plan::Program Pipeline(int stages, int microbatches, const StageTimes& times, int chunks = 1,
                       int deferred = 0) {
  plan::Job job;
  job.name = "pipeline";
  plan::Module llm = tests::Gpt("llm", stages * chunks, 256, 4, 1024);
  llm.transformer.tied_embeddings = false;
  llm.transformer.max_positions = 128;
  llm.layout = plan::Layout{.pp = stages, .vpp = chunks};
  job.modules = {llm};
  job.num_ranks = stages;
  job.workload = {.sequence_length = 128, .global_batch = microbatches, .microbatch_size = 1};
  job.schedule.defer_embedding_wgrad = deferred;
  job.optimizer.overlap_grad_reduce = false;
  job.optimizer.overlap_param_gather = false;
  plan::Program program = plan::Build(job);
  for (std::size_t rank = 0; rank < program.role_of_rank.size(); ++rank) {
    const plan::SizeTable& table = program.tables[program.table_of_rank[rank]];
    for (const plan::Op& op : program.roles[program.role_of_rank[rank]].ops) {
      if (op.kind != plan::OpKind::kCompute && op.kind != plan::OpKind::kOptimizer) continue;
      std::int64_t duration = 0;
      if (op.kind == plan::OpKind::kCompute) {
        duration = op.action() == plan::Action::kForward ? times.forward_ps : times.backward_ps;
      }
      program.works[table.works[op.size]].parts = GivenWork(duration).parts;
    }
  }
  return program;
}

/// The same program with every receive posted as early as can be, on a lane of its own, so that a
/// message is on its way as soon as it is sent.
///
/// Built programs post receives together with sends, as Megatron does: the forward of a microbatch
/// is fetched only after the backward before it, which costs a stage two messages per microbatch.
plan::Program WithReceivesAhead(plan::Program program) {
  for (plan::Role& role : program.roles) {
    const auto receive_lane = static_cast<std::uint16_t>(role.lanes.size());
    role.lanes.push_back({.kind = plan::LaneKind::kP2P});
    std::vector<plan::Op> ops;
    for (plan::Op op : role.ops) {
      if (op.kind != plan::OpKind::kP2P) {
        ops.push_back(op);
        continue;
      }
      // Receives come first in a P2P op's transfers, and are all it produces.
      const auto transfers = role.transfers_of(op);
      const auto num_receives = static_cast<std::uint16_t>(
          std::count_if(transfers.begin(), transfers.end(),
                        [](const plan::Transfer& transfer) { return !transfer.sends; }));
      if (num_receives > 0) {
        plan::Op receive = op;
        receive.lane = receive_lane;
        receive.num_transfers = num_receives;
        receive.num_consumed = 0;
        ops.push_back(receive);
      }
      op.first_transfer += num_receives;
      op.num_transfers = static_cast<std::uint16_t>(op.num_transfers - num_receives);
      op.num_produced = 0;
      if (op.num_transfers > 0) ops.push_back(op);
    }
    role.ops = std::move(ops);
  }
  return program;
}

/// The longest span of a stage, from its first forward to its last backward.
std::int64_t Cost(const plan::Program& program, const StageTimes& times) {
  const TinyRun run = RunGiven(program, {}, false, GivenHop(times.hop_ps));
  EXPECT_FALSE(run.result.deadlock);
  std::int64_t longest = 0;
  for (std::uint32_t cls = 0; cls < run.lowered.classes.size(); ++cls) {
    const std::vector<plan::Op>& ops = run.lowered.role(cls).ops;
    std::int64_t first = -1;
    std::int64_t last = 0;
    int num_computes = 0;
    for (std::size_t op = 0; op < ops.size(); ++op) {
      if (ops[op].kind != plan::OpKind::kCompute) continue;
      ++num_computes;
      if (first < 0) first = run.result.times[cls].start_ps[op];
      last = run.result.times[cls].end_ps[op];
    }
    // One forward and one backward per turn: else the given times are not those of a stage.
    EXPECT_EQ(num_computes, 2 * program.num_microbatches * program.modules[0].num_chunks());
    longest = std::max(longest, last - first);
  }
  return longest;
}

TEST(Pipeline, BubbleOfEqualStagesIsTheClosedForm) {
  for (int stages = 2; stages <= 8; ++stages) {
    for (const int microbatches : {1, 2, stages - 1, stages, 2 * stages + 1, 32}) {
      // A backward of twice the forward; m + p - 1 turns of both, whatever their ratio.
      const StageTimes times{.forward_ps = 1000, .backward_ps = 2000};
      const std::int64_t cost = Cost(Pipeline(stages, microbatches, times), {.hop_ps = 0});
      const std::int64_t ideal = 3000L * (microbatches + stages - 1);
      EXPECT_EQ(cost, ideal) << stages << " stages, " << microbatches << " microbatches";
      const double bubble = 1.0 - 3000.0 * microbatches / static_cast<double>(cost);
      const double formula = (stages - 1.0) / (microbatches + stages - 1.0);
      EXPECT_NEAR(bubble, formula, 1e-12);
    }
  }
}

/// The same with a head of its own time: 100 for the gradient of its input, 200 for that of its
/// weights; what waits of the latter runs after the last backward.
plan::Program WithHead(int deferred) {
  const StageTimes times{.forward_ps = 1000, .backward_ps = 2000};
  plan::Program program = Pipeline(2, 4, times, 1, deferred);
  for (std::size_t rank = 0; rank < program.role_of_rank.size(); ++rank) {
    const plan::SizeTable& table = program.tables[program.table_of_rank[rank]];
    for (const plan::Op& op : program.roles[program.role_of_rank[rank]].ops) {
      if (op.kind != plan::OpKind::kCompute) continue;
      const bool head =
          program.works[table.works[op.size]].name.find("layers") == std::string::npos;
      if (!head && op.action() != plan::Action::kBackward) continue;
      const bool input = op.action() != plan::Action::kBackwardWeight;
      const bool weight = op.action() != plan::Action::kBackwardInput;
      const std::int64_t duration = head ? (input ? 100 : 0) + (weight ? 200 : 0) : 2000;
      program.works[table.works[op.size]].parts = GivenWork(duration).parts;
    }
  }
  return program;
}

// Two stages, four microbatches. The second stage starts at 1,000 and takes 1,000 + 300 + 2,000 for
// each; the first one's last backward follows: 1,000 + 4 · 3,300 + 2,000. With the head's weight
// gradients of n microbatches put off it is 200 · n less, and 800 at most of the last stage's
// 2,000 of idle time are taken.
TEST(Pipeline, DeferredWeightGradientsOfTheHeadFillTheBubble) {
  for (const int deferred : {1, 2, 4, 9}) {
    const TinyRun run = RunGiven(WithHead(deferred), {}, false, GivenHop(0));
    std::int64_t end = 0;
    for (const ClassTimes& times : run.result.times) {
      for (const std::int64_t op : times.end_ps) end = std::max(end, op);
    }
    EXPECT_EQ(end, 16'200 - 200 * std::min(deferred, 4)) << deferred;
  }
}

// A chunk takes a v-th of its stage: (p-1)(F+B)/v is what p - 1 turns of one chunk take.
TEST(Pipeline, InterleavingDividesTheBubbleByTheChunks) {
  for (int stages = 2; stages <= 8; ++stages) {
    for (int chunks = 2; chunks <= 4; ++chunks) {
      for (const int groups : {1, 2, 5}) {
        const int microbatches = groups * stages;
        const StageTimes times{.forward_ps = 1000, .backward_ps = 2000};
        const plan::Program program = Pipeline(stages, microbatches, times, chunks);
        EXPECT_EQ(Cost(program, {.hop_ps = 0}), 3000L * (microbatches * chunks + stages - 1))
            << stages << " stages of " << chunks << " chunks, " << microbatches << " microbatches";
      }
    }
  }
}

// What four more groups of p microbatches cost on four stages, with hops of 10: each microbatch
// 3,000 of compute. With one chunk it waits for both its messages besides; with two chunks of half
// the time each message has at least a chunk's forward (500) to arrive, more than its hop.
TEST(Pipeline, InterleavingHidesTheHopsThatPlain1F1BPays) {
  constexpr int kStages = 4;
  const auto four_groups = [](int chunks, const StageTimes& times) {
    return Cost(Pipeline(kStages, 8 * kStages, times, chunks), times) -
           Cost(Pipeline(kStages, 4 * kStages, times, chunks), times);
  };
  EXPECT_EQ(four_groups(1, {1000, 2000, 10}), 4L * kStages * (3000 + 2 * 10));
  EXPECT_EQ(four_groups(2, {500, 1000, 10}), 4L * kStages * 3000);
}

/// One row of the paper: how its stages take their time, and the bubble rate it computed.
struct PaperRow {
  std::string id;
  int stages = 0;
  int microbatches = 0;
  StageTimes times;
  double bubble = 0;

  double BubbleOf(std::int64_t cost) const {
    const std::int64_t work = microbatches * (times.forward_ps + times.backward_ps);
    return static_cast<double>(cost - work) / static_cast<double>(cost);
  }
};

std::vector<PaperRow> PaperRows() {
  std::vector<PaperRow> rows;
  for (const auto& cells : Facts("zero_bubble_1f1b.csv")) {
    const auto ps = [&](const std::string& column) {
      return std::llround(std::stod(cells.at(column)) * 1e9);
    };
    PaperRow& row = rows.emplace_back();
    row.id = cells.at("row_id");
    row.stages = std::stoi(cells.at("stages"));
    row.microbatches = std::stoi(cells.at("microbatches"));
    // 1F1B computes the gradients of inputs and weights at once.
    row.times = {ps("t_f_ms"), ps("t_b_ms") + ps("t_w_ms"), ps("t_comm_ms")};
    row.bubble = std::stod(cells.at("bubble_rate"));
  }
  return rows;
}

TEST(Pipeline, ReproducesTheZeroBubblePapersRowsOf1F1B) {
  const std::vector<PaperRow> rows = PaperRows();
  ASSERT_EQ(rows.size(), 12U);
  for (const PaperRow& row : rows) {
    const plan::Program program = Pipeline(row.stages, row.microbatches, row.times);
    const std::int64_t cost = Cost(WithReceivesAhead(program), row.times);
    EXPECT_NEAR(row.BubbleOf(cost), row.bubble, 0.001) << row.id;
  }
}

TEST(Pipeline, BlockingExchangesCostTwoHopsPerMicrobatch) {
  for (const PaperRow& row : PaperRows()) {
    const std::int64_t cost = Cost(Pipeline(row.stages, row.microbatches, row.times), row.times);
    const std::int64_t turns = row.microbatches + row.stages - 1;
    const std::int64_t hops =
        (cost - turns * (row.times.forward_ps + row.times.backward_ps)) / row.times.hop_ps;
    // Never faster than messages that nobody waits to take; the paper's rates are less than 0.35
    // points below.
    EXPECT_EQ(hops, 2 * row.microbatches + 2 * row.stages - 5) << row.id;
    EXPECT_NEAR(row.BubbleOf(cost), row.bubble, 0.0035) << row.id;
  }
}

}  // namespace
}  // namespace isthmus::sim
