// The validator finds what is wrong: programs that are broken on purpose, one way each.

#include "plan/program/validate.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/program_jobs.h"

namespace isthmus::plan {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using tests::EncoderOf;
using tests::Find;
using tests::FindCollectives;
using tests::FindComputes;
using tests::JobOf;
using tests::LlmOf;
using tests::ProblemsOf;

/// Gives a rank a role of its own and returns it, so that it can be broken on this rank alone.
Role& OwnRole(Program& program, int rank) {
  const Role copy = program.role(base::Rank{rank});
  program.roles.push_back(copy);
  program.role_of_rank[static_cast<std::size_t>(rank)] =
      static_cast<std::uint32_t>(program.roles.size() - 1);
  return program.roles.back();
}

/// The same for its size table.
SizeTable& OwnTable(Program& program, int rank) {
  const SizeTable copy = program.table(base::Rank{rank});
  program.tables.push_back(copy);
  program.table_of_rank[static_cast<std::size_t>(rank)] =
      static_cast<std::uint32_t>(program.tables.size() - 1);
  return program.tables.back();
}

std::vector<std::size_t> Exchanges(const Program& program, int rank) {
  return Find(program, rank, [](const Op& op) { return op.kind == OpKind::kP2P; });
}

/// An LLM of two stages and two copies: stages {0,1} and {2,3}; four buckets or less a stage.
Program Pipeline() {
  Job job = JobOf(Placement::kHomogeneous, {LlmOf({.pp = 2, .dp = 2})});
  job.optimizer.bucket_parameters = 15'000'000;
  return Build(job);
}

TEST(Validate, FindsNothingWrongWithWhatBuildMakes) {
  EXPECT_EQ(ProblemsOf(Pipeline()), "");
  EXPECT_EQ(ProblemsOf(Build(tests::JoinOfUnequalDepth())), "");
}

// Reference §6.3: with two messages a call, the code's warm-up rule deadlocks at the join, where L0
// waits for E2 to take the gradient's shape and E2 for L0 to take a payload. The paper's rule does
// not, and one message a call is safe either way.
TEST(Validate, FindsTheDeadlockOfTheJoinUnderShapeThenPayload) {
  Job job = tests::JoinOfUnequalDepth();
  job.schedule.protocol = MessageProtocol::kShapeThenPayload;
  job.schedule.warmup_rule = WarmupRule::kDistanceFromSource;
  const std::string problems = ProblemsOf(Build(job));
  EXPECT_THAT(problems, HasSubstr("deadlock: rank 2"));
  EXPECT_THAT(problems, HasSubstr("deadlock: rank 3"));
  job.schedule.warmup_rule = WarmupRule::kDistanceToSink;
  EXPECT_EQ(ProblemsOf(Build(job)), "");
  job.schedule.protocol = MessageProtocol::kSingle;
  EXPECT_EQ(ProblemsOf(Build(job)), "");
  job.schedule.warmup_rule = WarmupRule::kDistanceFromSource;
  EXPECT_EQ(ProblemsOf(Build(job)), "");
}

// Leaves out each transfer of each rank in turn, with the value that it would have delivered.
TEST(Validate, FindsEveryTransferThatIsLeftOut) {
  const Program whole = Build(tests::JoinOfUnequalDepth(3));
  int left_out = 0;
  for (int rank = 0; rank < whole.num_ranks; ++rank) {
    for (const std::size_t index : Exchanges(whole, rank)) {
      for (std::uint32_t at = 0; at < whole.role(base::Rank{rank}).ops[index].num_transfers; ++at) {
        Program program = whole;
        Role& role = OwnRole(program, rank);
        Op& op = role.ops[index];
        std::swap(role.transfers[op.first_transfer + at],
                  role.transfers[op.first_transfer + op.num_transfers - 1U]);
        --op.num_transfers;
        EXPECT_NE(ProblemsOf(program), "") << "rank " << rank << " op " << index;
        ++left_out;
      }
    }
  }
  // Four exchanging pairs (R0-R1, R1-R3, R2-R3, R3-R4, R4-R5: five), both ways, both ends, 3 each.
  EXPECT_EQ(left_out, 5 * 2 * 2 * 3);
}

TEST(Validate, FindsATransferOfAnotherSize) {
  Program program = Pipeline();
  const Op& op = program.role(base::Rank{0}).ops[Exchanges(program, 0).front()];
  const SizeId size = program.role(base::Rank{0}).transfers[op.first_transfer].size;
  OwnTable(program, 0).bytes[size] += base::Bytes{2};
  // 1,536 tokens of 768 in 16 bits; the second to come tells.
  EXPECT_THAT(ProblemsOf(program), HasSubstr("2359298"));
}

TEST(Validate, FindsACollectiveOfAnotherSize) {
  Program program = Pipeline();
  const auto reduces =
      FindCollectives(program, 1, CollectiveKind::kReduceScatter, Purpose::kGradientSync);
  const SizeId size = program.role(base::Rank{1}).ops[reduces.front()].size;
  OwnTable(program, 1).bytes[size] += base::Bytes{4};
  EXPECT_THAT(ProblemsOf(program), HasSubstr("another op or size"));
}

TEST(Validate, FindsTwoCollectivesOfOneCommunicatorSwappedOnOneRank) {
  Program program = Pipeline();
  const auto gathers =
      FindCollectives(program, 1, CollectiveKind::kAllGather, Purpose::kParameterGather);
  ASSERT_GE(gathers.size(), 2U);
  Role& role = OwnRole(program, 1);
  std::swap(role.ops[gathers[0]], role.ops[gathers[1]]);
  EXPECT_THAT(ProblemsOf(program), HasSubstr("another op or size"));
}

// Two communicators of the same ranks, issued one way by one rank and the other way by the other:
// each lane is in order, but if collectives exclude each other, both ranks wait for ever.
TEST(Validate, FindsCommunicatorsIssuedInDifferentOrders) {
  Program program =
      Build(JobOf(Placement::kColocated, {EncoderOf("vision", {.dp = 2}), LlmOf({.dp = 2})}));
  ASSERT_EQ(ProblemsOf(program), "");
  const auto gathers =
      FindCollectives(program, 1, CollectiveKind::kAllGather, Purpose::kParameterGather);
  Role& role = OwnRole(program, 1);
  const auto of_llm = std::find_if(gathers.begin(), gathers.end(),
                                   [&](std::size_t index) { return role.ops[index].module == 1; });
  ASSERT_NE(of_llm, gathers.begin());
  // Host order on rank 1 becomes: the LLM's gathers, then the encoder's.
  std::vector<Op> swapped;
  for (auto index = of_llm; index != gathers.end(); ++index) swapped.push_back(role.ops[*index]);
  for (auto index = gathers.begin(); index != of_llm; ++index) swapped.push_back(role.ops[*index]);
  for (std::size_t at = 0; at < gathers.size(); ++at) role.ops[gathers[at]] = swapped[at];
  EXPECT_THAT(ProblemsOf(program),
              HasSubstr("issue the communicators they share in different orders"));
}

TEST(Validate, FindsACollectiveThatAMemberLeavesOut) {
  Program program = Pipeline();
  const auto reduces =
      FindCollectives(program, 3, CollectiveKind::kReduceScatter, Purpose::kGradientSync);
  Role& role = OwnRole(program, 3);
  // Another member takes part alone: turned into a sum over nobody's values on the other's lane.
  Op& op = role.ops[reduces.back()];
  const auto others = Find(program, 3, [&](const Op& other) {
    return other.kind == OpKind::kCollective && other.group != op.group;
  });
  op.group = role.ops[others.front()].group;
  op.lane = role.ops[others.front()].lane;
  EXPECT_NE(ProblemsOf(program), "");
}

TEST(Validate, FindsAValueThatNobodyProduced) {
  Program program = Pipeline();
  Role& role = OwnRole(program, 0);
  const auto backward = FindComputes(program, 0, 0, Action::kBackward, 0).front();
  const auto later = FindComputes(program, 0, 0, Action::kForward, 3).front();
  role.consumed[role.ops[backward].first_consumed] = role.produced[role.ops[later].first_produced];
  EXPECT_THAT(ProblemsOf(program), HasSubstr("nothing before it produced"));
}

TEST(Validate, FindsAValueProducedTwice) {
  Program program = Pipeline();
  Role& role = OwnRole(program, 0);
  const auto forwards = FindComputes(program, 0, 0, Action::kForward);
  role.produced[role.ops[forwards[1]].first_produced] =
      role.produced[role.ops[forwards[0]].first_produced];
  EXPECT_THAT(ProblemsOf(program), HasSubstr("a second time"));
}

// Accumulation replaces a version; whoever reads the old one afterwards reads the new gradient.
TEST(Validate, FindsAVersionThatWasReplaced) {
  Program program = Pipeline();
  Role& role = OwnRole(program, 0);
  const auto zero = tests::FindOptimizer(program, 0, OptimizerAction::kZero).front();
  const auto norm = tests::FindOptimizer(program, 0, OptimizerAction::kNorm).front();
  role.consumed[role.ops[norm].first_consumed] = role.produced[role.ops[zero].first_produced];
  EXPECT_THAT(ProblemsOf(program), HasSubstr("replaced"));
}

TEST(Validate, FindsABackwardBeforeItsForward) {
  Program program = Pipeline();
  Role& role = OwnRole(program, 2);  // the last stage: forward and backward lie side by side
  const auto forward = FindComputes(program, 2, 0, Action::kForward, 1).front();
  const auto backward = FindComputes(program, 2, 0, Action::kBackward, 1).front();
  std::swap(role.ops[forward], role.ops[backward]);
  EXPECT_THAT(ProblemsOf(program), HasSubstr("comes before its forward"));
}

TEST(Validate, FindsAMicrobatchWithoutBackward) {
  Program program = Pipeline();
  Role& role = OwnRole(program, 2);
  const auto backward = FindComputes(program, 2, 0, Action::kBackward, 1).front();
  role.ops[backward].detail = static_cast<std::uint8_t>(Action::kRecompute);
  EXPECT_THAT(ProblemsOf(program), HasSubstr("microbatch 1 of llm in step 0 has no backward"));
}

// A program warmed up by the code's rule holds 5 microbatches on E2, where the paper's rule allows
// 4: depth 3 and the one that is running.
TEST(Validate, FindsTooManyMicrobatchesInFlight) {
  Job job = tests::JoinOfUnequalDepth();
  job.schedule.warmup_rule = WarmupRule::kDistanceFromSource;
  Program program = Build(job);
  program.schedule.warmup_rule = WarmupRule::kDistanceToSink;
  EXPECT_EQ(ProblemsOf(program),
            "role e2.0 leader: 5 microbatches of e2 in flight, the schedule allows 4\n");
}

TEST(Validate, FindsMessagesThatOnlyOneSideLists) {
  Program program =
      Build(JobOf(Placement::kNonColocated, {EncoderOf("vision", {.dp = 2}), LlmOf({})}));
  program.boundaries[0].ranks[1].sends_forward.front().tokens.end -= 96;
  EXPECT_THAT(ProblemsOf(program), HasSubstr("edge 0: ranks 1 and 2 list other messages"));
}

// Both ends agree on a wrong size: 4 images of 96 tokens, 768 wide, in 16 bits would be right.
TEST(Validate, FindsBytesThatAreNotThoseOfTheMessage) {
  Program program =
      Build(JobOf(Placement::kNonColocated, {EncoderOf("vision", {.dp = 2}), LlmOf({})}));
  for (const int rank : {0, 2}) {
    const Role& role = program.role(base::Rank{rank});
    for (const Transfer& transfer : role.transfers) {
      const int peer = program.Peer(base::Rank{rank}, role.peers[transfer.peer]).value();
      if (peer == 2 - rank) OwnTable(program, rank).bytes[transfer.size] = base::Bytes{1024};
    }
  }
  const std::string problems = ProblemsOf(program);
  EXPECT_THAT(problems, HasSubstr("rank 0: edge 0: a transfer of 1024 bytes is not its message"));
  EXPECT_THAT(problems, HasSubstr("rank 2: edge 0: a transfer of 1024 bytes is not its message"));
  EXPECT_THAT(problems, Not(HasSubstr("rank 1")));
}

// A third message between the leaders that no op moves.
TEST(Validate, FindsAMessageThatNeverMoves) {
  Job job = JobOf(Placement::kNonColocated, {EncoderOf("vision", {.dp = 2}), LlmOf({})});
  job.modules[0].settings.frozen = job.modules[0].projector->frozen = true;
  Program program = Build(job);
  ASSERT_EQ(ProblemsOf(program), "");
  RankBoundary& encoder = program.boundaries[0].ranks[1];
  RankBoundary& llm = program.boundaries[0].ranks[2];
  encoder.sends_forward.push_back(encoder.sends_forward.front());
  llm.receives_forward.push_back(llm.receives_forward.back());
  EXPECT_EQ(ProblemsOf(program),
            "rank 1: edge 0: message 1 never moves\n"
            "rank 2: edge 0: message 2 never moves\n");
}

TEST(Validate, FindsMembersThatListAGroupInAnotherOrder) {
  Program program = Build(
      JobOf(Placement::kColocated, {EncoderOf("vision", {.dp = 4}), LlmOf({.tp = 2, .dp = 2})}));
  ASSERT_EQ(ProblemsOf(program), "");
  std::vector<base::Rank>& members = program.boundaries[0].ranks[1].groups.front();
  std::swap(members.front(), members.back());
  EXPECT_THAT(ProblemsOf(program), HasSubstr("deadlock"));
}

TEST(Validate, FindsReferencesToNothing) {
  const Program whole = Pipeline();
  const std::size_t compute = FindComputes(whole, 0, 0, Action::kForward).front();
  const std::size_t reduce =
      FindCollectives(whole, 0, CollectiveKind::kReduceScatter, Purpose::kGradientSync).front();
  const auto broken = [&](auto change) {
    Program program = whole;
    change(OwnRole(program, 0));
    return ProblemsOf(program);
  };
  EXPECT_THAT(broken([&](Role& role) { role.ops[compute].lane = 99; }),
              HasSubstr("lane doesn't exist"));
  EXPECT_THAT(broken([&](Role& role) { role.ops[reduce].group = 99; }),
              HasSubstr("group doesn't exist"));
  EXPECT_THAT(broken([&](Role& role) { role.ops[reduce].group = kNone32; }),
              HasSubstr("group doesn't exist"));
  EXPECT_THAT(broken([&](Role& role) { role.ops[compute].size = 9999; }),
              HasSubstr("work doesn't exist"));
  EXPECT_THAT(broken([&](Role& role) { role.ops[compute].module = 7; }),
              HasSubstr("module doesn't exist"));
  EXPECT_THAT(broken([&](Role& role) { std::swap(role.ops[compute].lane, role.ops[reduce].lane); }),
              HasSubstr("lane of another kind"));
  EXPECT_THAT(broken([&](Role& role) { role.consumed[role.ops[compute].first_consumed] = 99999; }),
              HasSubstr("value 99999"));
  EXPECT_THAT(broken([&](Role& role) { role.transfers.front().peer = 99; }),
              HasSubstr("transfer's peer"));
  EXPECT_THAT(broken([&](Role& role) { role.values.front().storage = 99999; }),
              HasSubstr("storage 99999"));
}

}  // namespace
}  // namespace isthmus::plan
