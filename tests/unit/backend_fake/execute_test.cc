#include "backend/fake/execute.h"

#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/small_jobs.h"
#include "traces/recorder.h"

namespace isthmus::backend {
namespace {

using namespace std::chrono_literals;
using base::Bytes;
using base::Rank;
using plan::Placement;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using tests::SmallJob;
using tests::SmallLlm;

plan::Program TwoStages() {
  return plan::Build(SmallJob("two stages", Placement::kHomogeneous, {SmallLlm({.pp = 2})}));
}

plan::Program TwoCopies() {
  return plan::Build(SmallJob("two copies", Placement::kHomogeneous, {SmallLlm({.dp = 2})}));
}

Outcome RunAll(const plan::Program& program, const ExecuteOptions& options = {}) {
  traces::Recorder sink;
  return Execute(program, options, sink);
}

template <typename Error = base::Error>
std::string ErrorOf(const plan::Program& program, const ExecuteOptions& options = {}) {
  try {
    (void)RunAll(program, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ExecuteTest, ExecutesEveryOpOfEveryRankInLaneOrder) {
  const plan::Program program = TwoStages();
  const Outcome outcome = RunAll(program);
  EXPECT_FALSE(outcome.deadlock);
  EXPECT_EQ(outcome.num_ops, program.roles[0].ops.size() + program.roles[1].ops.size());
  for (const auto& lanes : outcome.ops_by_lane) {
    for (const auto& ops : lanes) EXPECT_TRUE(std::is_sorted(ops.begin(), ops.end()));
  }
}

// Four microbatches cross the border once each way: 1,536 tokens × 768 × 2 bytes = 2,359,296.
TEST(ExecuteTest, CountsTheBytesOfMessages) {
  const Outcome outcome = RunAll(TwoStages());
  ASSERT_EQ(outcome.channels.size(), 2U);
  EXPECT_EQ(outcome.channels[0].from, Rank{0});
  EXPECT_EQ(outcome.channels[0].to, Rank{1});
  EXPECT_EQ(outcome.channels[0].messages, std::vector<Bytes>(4, Bytes{2'359'296}));
  EXPECT_EQ(outcome.channels[1].from, Rank{1});
  EXPECT_EQ(outcome.channels[1].messages, std::vector<Bytes>(4, Bytes{2'359'296}));
}

TEST(ExecuteTest, CountsMembersAndBytesOfGroups) {
  const Outcome outcome = RunAll(TwoCopies());
  const auto group = std::find_if(outcome.groups.begin(), outcome.groups.end(),
                                  [](const GroupCount& count) { return count.name == "world"; });
  ASSERT_NE(group, outcome.groups.end());
  EXPECT_THAT(group->members, ElementsAre(Rank{0}, Rank{1}));
  EXPECT_THAT(group->joined, ElementsAre(Rank{0}, Rank{1}));
  // One module only, so just the token count is summed over the world: 8 bytes.
  EXPECT_EQ(group->num_meetings, 1);
  EXPECT_EQ(group->bytes.at(plan::CollectiveKind::kAllReduce), Bytes{8});
}

/// An event for every op, none before what it depends on is over, one at a time on a lane.
void CheckTimes(const traces::Trace& trace) {
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // rank, op, inner
  std::map<Key, traces::Event> events;
  for (const traces::Event& event : trace.events) {
    EXPECT_LE(event.issue_ps, event.start_ps);
    EXPECT_LE(event.start_ps, event.end_ps);
    EXPECT_LE(event.end_ps, trace.trailer.end_ps);
    EXPECT_TRUE(events.try_emplace({event.rank_class, event.op, event.inner}, event).second);
  }
  for (std::uint32_t rank = 0; rank < trace.header.classes.size(); ++rank) {
    const auto& role = trace.header.roles[trace.header.classes[rank].role];
    std::map<std::uint16_t, std::int64_t> lane_is_free;
    for (std::uint32_t op = 0; op < role.ops.size(); ++op) {
      ASSERT_TRUE(events.contains({rank, op, 0}));
      const traces::Event& event = events.at({rank, op, 0});
      for (const traces::Dependency& before : role.ops[op].dependencies) {
        const auto producer = events.find({rank, before.op, before.transfer});
        if (producer == events.end()) continue;  // an empty transfer
        EXPECT_GE(event.issue_ps, producer->second.end_ps);
      }
      EXPECT_GE(event.issue_ps, lane_is_free[role.ops[op].lane]);
      lane_is_free[role.ops[op].lane] = event.end_ps;
    }
  }
}

TEST(ExecuteTest, RecordsWhatIsOverBeforeWhatNeedsIt) {
  for (const plan::Job& job :
       {tests::UnevenJoin(), SmallJob("mixed", Placement::kColocated,
                                      {tests::SmallEncoder("vision", {.dp = 8}),
                                       SmallLlm({.tp = 2, .pp = 2, .dp = 2})})}) {
    SCOPED_TRACE(job.name);
    traces::Recorder sink;
    EXPECT_FALSE(Execute(plan::Build(job), {}, sink).deadlock);
    EXPECT_EQ(sink.header().kind, traces::TraceKind::kMeasured);
    EXPECT_EQ(sink.header().classes.size(), static_cast<std::size_t>(job.num_ranks));
    EXPECT_TRUE(sink.complete());
    CheckTimes(sink.trace());
  }
}

TEST(ExecuteTest, IssuesNothingWhileABlockingOpRuns) {
  plan::Job job = tests::UnevenJoin();
  job.schedule.protocol = plan::MessageProtocol::kShapeThenPayload;
  const plan::Program program = plan::Build(job);
  traces::Recorder sink;
  ASSERT_FALSE(Execute(program, {}, sink).deadlock);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> over;  // (rank, op), messages too
  for (const traces::Event& event : sink.events()) {
    std::int64_t& end = over[{event.rank_class, event.op}];
    end = std::max(end, event.end_ps);
  }
  int num_blocking = 0;
  for (const traces::Event& event : sink.events()) {
    const auto& ops = program.role(Rank{static_cast<std::int32_t>(event.rank_class)}).ops;
    for (std::uint32_t before = 0; before < event.op; ++before) {
      if ((ops[before].flags & plan::kBlocksHost) == 0) continue;
      ++num_blocking;
      EXPECT_GE(event.issue_ps, (over[{event.rank_class, before}]));
    }
  }
  EXPECT_GT(num_blocking, 0);
}

/// Sets the size of every pipeline message, or of every collective, in the table of `rank`.
void SetSizes(plan::Program& program, Rank rank, plan::OpKind kind, Bytes bytes) {
  const plan::Role& role = program.role(rank);
  plan::SizeTable& table = program.tables[program.table_of_rank[rank.index()]];
  for (const plan::Op& op : role.ops) {
    if (op.kind != kind) continue;
    if (kind == plan::OpKind::kCollective) table.bytes[op.size] = bytes;
    for (const plan::Transfer& transfer : role.transfers_of(op)) {
      table.bytes[transfer.size] = bytes;
    }
  }
}

/// Gives each rank a table of its own.
void SeparateTables(plan::Program& program) {
  std::vector<plan::SizeTable> tables;
  for (std::uint32_t& table : program.table_of_rank) {
    tables.push_back(program.tables[table]);
    table = static_cast<std::uint32_t>(tables.size() - 1);
  }
  program.tables = tables;
}

TEST(ExecuteTest, SkipsWhatIsEmpty) {
  plan::Program stages = TwoStages();
  SeparateTables(stages);
  for (const Rank rank : {Rank{0}, Rank{1}}) SetSizes(stages, rank, plan::OpKind::kP2P, Bytes{0});
  const Outcome apart = RunAll(stages);
  EXPECT_FALSE(apart.deadlock);
  EXPECT_THAT(apart.channels, IsEmpty());

  plan::Program copies = TwoCopies();
  SetSizes(copies, Rank{0}, plan::OpKind::kCollective, Bytes{0});
  const Outcome alone = RunAll(copies);
  EXPECT_FALSE(alone.deadlock);
  for (const GroupCount& group : alone.groups) {
    EXPECT_TRUE(group.compute || group.num_meetings == 0) << group.name;
  }
}

TEST(ExecuteTest, NamesMessagesOfDifferentSizes) {
  plan::Program program = TwoStages();
  SeparateTables(program);
  SetSizes(program, Rank{1}, plan::OpKind::kP2P, Bytes{7});
  EXPECT_EQ(ErrorOf(program), "message 0 from rank 0 to rank 1: 2359296 bytes sent, 7 awaited");
}

TEST(ExecuteTest, NamesCollectivesOfDifferentSizes) {
  plan::Program program = TwoCopies();
  SeparateTables(program);
  SetSizes(program, Rank{1}, plan::OpKind::kCollective, Bytes{7});
  EXPECT_THAT(ErrorOf(program), HasSubstr("7 bytes)"));
}

// Rank 3 fails alone; without a stop the others would wait for it for ever.
TEST(ExecuteTest, StopsAllRanksWhenOneFails) {
  const plan::Program program = plan::Build(tests::UnevenJoin());
  const auto fail = [](Rank rank, std::uint32_t op) {
    if (rank == Rank{3} && op == 5) throw base::Error("rank 3 broke");
  };
  EXPECT_EQ(ErrorOf(program, {.before_op = fail}), "rank 3 broke");
}

TEST(ExecuteTest, ThrowsWhatTheLowestRankThrew) {
  const plan::Program program = plan::Build(tests::UnevenJoin());
  const auto fail = [](Rank rank, std::uint32_t /*op*/) {
    // The higher the rank, the sooner; all start, since none hears of a stop before its first op.
    std::this_thread::sleep_for(10ms * (6 - rank.value()));
    throw base::Error("rank " + std::to_string(rank.value()) + " broke");
  };
  EXPECT_EQ(ErrorOf(program, {.before_op = fail}), "rank 0 broke");
}

TEST(ExecuteTest, GivesUpOnARankThatDoesNotComeBack) {
  const plan::Program program = TwoStages();
  const auto hang = [](Rank rank, std::uint32_t op) {
    if (rank == Rank{1} && op == 3) std::this_thread::sleep_for(500ms);
  };
  const std::string text = ErrorOf<base::IoError>(program, {.patience = 50ms, .before_op = hang});
  EXPECT_THAT(text, HasSubstr("no rank has started an op for 50 ms"));
  EXPECT_THAT(text, HasSubstr("rank 0 is in op"));
  EXPECT_THAT(text, HasSubstr("rank 1 is in op"));
}

TEST(ExecuteTest, FindsADeadlockWithoutWaiting) {
  traces::Recorder sink;
  const Outcome outcome = Execute(plan::Build(tests::DeadlockingJoin()), {.patience = 3600s}, sink);
  EXPECT_TRUE(outcome.deadlock);
  EXPECT_THAT(outcome.explanation, HasSubstr("rank 3 is in op"));
  EXPECT_TRUE(sink.complete());
}

TEST(ExecuteTest, RefusesMoreRanksThanThreadsAreSensible) {
  plan::Program program = TwoStages();
  program.num_ranks = 1025;
  EXPECT_EQ(ErrorOf(program),
            "the fake backend runs each rank as a thread: at most 1024 ranks, not 1025");
}

}  // namespace
}  // namespace isthmus::backend
