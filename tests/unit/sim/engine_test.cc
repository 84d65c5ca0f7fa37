#include "sim/engine/engine.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/unit/sim/cost_profiles.h"
#include "tests/unit/sim/tiny_program.h"

namespace isthmus::sim {
namespace {

using traces::Event;

/// The one event of (class, op, inner).
Event EventOf(const TinyRun& run, std::uint32_t cls, std::uint32_t op, std::uint32_t inner = 0) {
  const auto matches = [&](const Event& event) {
    return event.rank_class == cls && event.op == op && event.inner == inner;
  };
  EXPECT_EQ(std::count_if(run.events.begin(), run.events.end(), matches), 1);
  const auto found = std::find_if(run.events.begin(), run.events.end(), matches);
  return found == run.events.end() ? Event{} : *found;
}

TEST(Engine, RunsALaneInOrder) {
  plan::Program program = EmptyProgram({});
  RoleSketch sketch(program);
  sketch.Compute(100);
  sketch.Compute(30);
  sketch.Give({0});
  const TinyRun run = RunGiven(program);
  EXPECT_FALSE(run.result.deadlock);
  EXPECT_EQ(run.events, (std::vector<Event>{{0, 0, 0, 0, 0, 100}, {0, 1, 0, 100, 100, 130}}));
  EXPECT_EQ(run.result.end_ps, 130);
  EXPECT_EQ(run.result.num_ops, 2U);
}

TEST(Engine, ARunThatOutlastsTheClockIsAnErrorThatNamesTheOp) {
  // Three times 46 days; the clock has 106.
  constexpr std::int64_t kDays46 = 4'000'000'000'000'000'000;
  plan::Program program = EmptyProgram({});
  RoleSketch sketch(program);
  for (int op = 0; op < 3; ++op) sketch.Compute(kDays46);
  sketch.Give({0});
  try {
    RunGiven(program);
    FAIL() << "it should be an error";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("op 2 of rank 0"));
    EXPECT_THAT(error.what(), testing::HasSubstr("takes 4e+06 s from 8e+06 s on, past"));
  }
}

TEST(Engine, RunsLanesBesideEachOther) {
  plan::Program program = EmptyProgram({});
  RoleSketch sketch(program);
  sketch.Compute(100);
  sketch.Copy(70, plan::CopyDirection::kToHost);
  sketch.Copy(20, plan::CopyDirection::kToDevice);
  sketch.Give({0});
  const TinyRun run = RunGiven(program);
  EXPECT_EQ(run.result.times[0].end_ps, (std::vector<std::int64_t>{100, 70, 20}));
  EXPECT_EQ(run.result.end_ps, 100);
}

TEST(Engine, StartsACollectiveWhenTheLastMemberIsThere) {
  plan::Program program = EmptyProgram({.tp = 3});
  for (int rank = 0; rank < 3; ++rank) {
    RoleSketch sketch(program);
    const auto value = sketch.NewValue();
    // Ready at 100, 250 and 40.
    sketch.Compute(std::vector{100, 250, 40}[static_cast<std::size_t>(rank)],
                   {.produces = {value}});
    sketch.AllReduce(60, plan::kTp, {.consumes = {value}});
    sketch.Give({rank});
  }
  const TinyRun run = RunGiven(program);
  EXPECT_EQ(EventOf(run, 0, 1), (Event{0, 1, 0, 100, 250, 310}));
  EXPECT_EQ(EventOf(run, 1, 1), (Event{1, 1, 0, 250, 250, 310}));
  EXPECT_EQ(EventOf(run, 2, 1), (Event{2, 1, 0, 40, 250, 310}));
}

TEST(Engine, CollectivesOfOneCommunicatorMeetOneAfterTheOther) {
  plan::Program program = EmptyProgram({.tp = 2});
  for (int rank = 0; rank < 2; ++rank) {
    RoleSketch sketch(program);
    sketch.AllReduce(10, plan::kTp);
    sketch.AllReduce(20, plan::kTp);
    sketch.AllReduce(5, plan::kTp);
    sketch.Give({rank});
  }
  const TinyRun run = RunGiven(program);
  for (const ClassTimes& times : run.result.times) {
    EXPECT_EQ(times.start_ps, (std::vector<std::int64_t>{0, 10, 30}));
    EXPECT_EQ(times.end_ps, (std::vector<std::int64_t>{10, 30, 35}));
  }
}

TEST(Engine, MatchedComputeTakesAsLongAsItsSlowestMember) {
  plan::Program program = EmptyProgram({.tp = 2});
  for (int rank = 0; rank < 2; ++rank) {
    RoleSketch sketch(program);
    sketch.Compute(rank == 0 ? 10 : 25);
    sketch.Compute(rank == 0 ? 90 : 40, {.matched_over = plan::kTp});
    sketch.Give({rank});
  }
  const TinyRun run = RunGiven(program);
  EXPECT_EQ(EventOf(run, 0, 1), (Event{0, 1, 0, 10, 25, 115}));
  EXPECT_EQ(EventOf(run, 1, 1), (Event{1, 1, 0, 25, 25, 115}));
}

/// Two stages that exchange both ways in one op; posted at 100 and 250.
plan::Program ExchangeProgram(std::int64_t forward_bytes, std::int64_t backward_bytes) {
  plan::Program program = EmptyProgram({.pp = 2});
  for (int rank = 0; rank < 2; ++rank) {
    RoleSketch sketch(program);
    const auto sent = sketch.NewValue();
    const auto got = sketch.NewValue();
    sketch.Compute(rank == 0 ? 100 : 250, {.produces = {sent}});
    const int delta = rank == 0 ? 1 : -1;
    const std::int64_t out = rank == 0 ? forward_bytes : backward_bytes;
    const std::int64_t in = rank == 0 ? backward_bytes : forward_bytes;
    sketch.Exchange({{.sends = false, .delta = delta, .value = got, .bytes = in},
                     {.sends = true, .delta = delta, .value = sent, .bytes = out}},
                    {.consumes = {sent}, .produces = {got}});
    sketch.Compute(1, {.consumes = {got}});
    sketch.Give({rank});
  }
  return program;
}

TEST(Engine, TransfersStartWhenBothSidesHavePosted) {
  const TinyRun run = RunGiven(ExchangeProgram(30, 70));
  EXPECT_FALSE(run.result.deadlock);
  // Posting takes no time and frees the lane; both directions start at 250, each takes its own
  // time.
  EXPECT_EQ(EventOf(run, 0, 1), (Event{0, 1, 0, 100, 100, 100}));
  EXPECT_EQ(EventOf(run, 1, 1), (Event{1, 1, 0, 250, 250, 250}));
  EXPECT_EQ(EventOf(run, 0, 1, 1), (Event{0, 1, 1, 100, 250, 320}));  // stage 0 receives 70
  EXPECT_EQ(EventOf(run, 0, 1, 2), (Event{0, 1, 2, 100, 250, 280}));  // and sends 30
  EXPECT_EQ(EventOf(run, 1, 1, 1), (Event{1, 1, 1, 250, 250, 280}));
  EXPECT_EQ(EventOf(run, 1, 1, 2), (Event{1, 1, 2, 250, 250, 320}));
  // A value is there when its own transfer is over, not when the whole op is.
  EXPECT_EQ(EventOf(run, 0, 2).start_ps, 320);
  EXPECT_EQ(EventOf(run, 1, 2).start_ps, 280);
}

TEST(Engine, SkipsTransfersOfNoBytes) {
  const TinyRun run = RunGiven(ExchangeProgram(30, 0));
  EXPECT_FALSE(run.result.deadlock);
  // Stage 0 receives nothing, so it goes on at once; the other direction is as before.
  EXPECT_EQ(EventOf(run, 0, 2).start_ps, 100);
  EXPECT_EQ(EventOf(run, 1, 2).start_ps, 280);
  EXPECT_EQ(run.result.times[0].transfer_end_ps, (std::vector<std::int64_t>{-1, 280}));
  const auto skipped = [](const Event& event) {
    return event.inner == (event.rank_class == 0 ? 1U : 2U);
  };
  EXPECT_EQ(std::count_if(run.events.begin(), run.events.end(), skipped), 0);
}

TEST(Engine, SkipsAnExchangeOfNoBytesAtAll) {
  const TinyRun run = RunGiven(ExchangeProgram(0, 0));
  EXPECT_FALSE(run.result.deadlock);
  EXPECT_EQ(EventOf(run, 0, 2).start_ps, 100);
  EXPECT_EQ(EventOf(run, 1, 2).start_ps, 250);
}

TEST(Engine, BlockingExchangesHoldTheHost) {
  plan::Program program = EmptyProgram({.pp = 2});
  for (int rank = 0; rank < 2; ++rank) {
    RoleSketch sketch(program);
    const auto value = sketch.NewValue();
    const bool sends = rank == 0;
    sketch.Compute(rank == 0 ? 10 : 50,
                   {.produces = sends ? std::vector{value} : std::vector<plan::ValueId>{}});
    Also also{.flags = plan::kBlocksHost};
    (sends ? also.consumes : also.produces) = {value};
    sketch.Exchange({{.sends = sends, .delta = sends ? 1 : -1, .value = value, .bytes = 5}}, also);
    sketch.Compute(1);
    sketch.Give({rank});
  }
  const TinyRun run = RunGiven(program);
  // The receiver posts at 0 (its exchange is before nothing on its lane); the message runs from 10
  // to 15. The sender's next compute waits for it; the receiver's for its own compute.
  EXPECT_EQ(EventOf(run, 0, 2).start_ps, 15);
  EXPECT_EQ(EventOf(run, 1, 2).start_ps, 50);
}

TEST(Engine, TakesStragglerWaitAfterBackwardAndOverheadAfterTheStep) {
  plan::Program program = EmptyProgram({}, 2);
  RoleSketch sketch(program);
  for (int step = 0; step < 2; ++step) {
    sketch.Compute(600, {.step = step});
    sketch.Compute(400, {.flags = plan::kEndsBackward, .step = step});
    sketch.Optimizer(10, {.flags = plan::kEndsStep, .step = step});
  }
  sketch.Give({0});
  const TinyRun run = RunGiven(program, {.straggler_share = 0.05, .step_overhead_ps = 7});
  // 5 % of 1,000 ps behind the backward, 7 ps behind the optimizer; the second step takes the same:
  // busy time starts anew.
  EXPECT_EQ(run.result.times[0].start_ps,
            (std::vector<std::int64_t>{0, 600, 1050, 1067, 1667, 2117}));
  EXPECT_EQ(run.result.step_end_ps, (std::vector<std::int64_t>{1067, 2134}));
  EXPECT_EQ(run.result.end_ps, 2134);
  EXPECT_EQ(run.result.waits, (std::vector<traces::ImposedWait>{{0, 1, 1000, 1050, true},
                                                                {0, 2, 1060, 1067, false},
                                                                {0, 4, 2067, 2117, true},
                                                                {0, 5, 2127, 2134, false}}));
}

TEST(Engine, FindsADeadlock) {
  plan::Program program = EmptyProgram({.pp = 2});
  RoleSketch waits(program);
  const auto value = waits.NewValue();
  waits.Compute(0);
  waits.Exchange({{.sends = false, .value = value, .bytes = 8}}, {.produces = {value}});
  const auto never = waits.Compute(5, {.consumes = {value}});
  waits.Give({0});
  RoleSketch other(program);  // sends nothing
  other.Compute(20);
  other.Give({1});
  const TinyRun run = RunGiven(program);
  EXPECT_TRUE(run.result.deadlock);
  EXPECT_EQ(run.result.blocked_class, 0U);
  // The exchange that never ends is to blame, not what waits for it, nor an op of no length at 0.
  EXPECT_EQ(run.result.blocked_op, never - 1);
  EXPECT_EQ(run.result.times[1].end_ps, (std::vector<std::int64_t>{20}));
}

TEST(Engine, FindsAMessageThatNobodyTakes) {
  plan::Program program = EmptyProgram({.pp = 2});
  RoleSketch sends(program);
  const auto value = sends.NewValue();
  sends.Compute(10, {.produces = {value}});
  sends.Exchange({{.sends = true, .value = value, .bytes = 8}}, {.consumes = {value}});
  sends.Give({0});
  RoleSketch other(program);
  other.Compute(20);
  other.Give({1});
  const TinyRun run = RunGiven(program);
  EXPECT_TRUE(run.result.deadlock);
  EXPECT_EQ(run.result.blocked_class, 0U);
  EXPECT_EQ(run.result.blocked_op, 1U);
}

TEST(Engine, FindsCollectivesThatNeverMeet) {
  plan::Program program = EmptyProgram({.tp = 2});
  RoleSketch alone(program);
  alone.AllReduce(10, plan::kTp);
  alone.Give({0});
  RoleSketch other(program);
  other.Compute(20);
  other.Give({1});
  const TinyRun run = RunGiven(program);
  EXPECT_TRUE(run.result.deadlock);
  EXPECT_EQ(run.result.blocked_op, 0U);
}

TEST(Engine, FoldsRanksThatDoTheSame) {
  plan::Program program = EmptyProgram({.tp = 4});
  RoleSketch sketch(program);
  sketch.Compute(100, {.matched_over = plan::kTp});
  sketch.AllReduce(20, plan::kTp);
  sketch.Give({0, 1, 2, 3});
  const TinyRun folded = RunGiven(program, {}, true);
  const TinyRun unfolded = RunGiven(program, {}, false);
  ASSERT_EQ(folded.lowered.classes.size(), 1U);
  EXPECT_TRUE(folded.lowered.folded);
  ASSERT_EQ(unfolded.lowered.classes.size(), 4U);
  EXPECT_FALSE(unfolded.lowered.folded);
  for (const ClassTimes& times : unfolded.result.times) {
    EXPECT_EQ(times.start_ps, folded.result.times[0].start_ps);
    EXPECT_EQ(times.end_ps, folded.result.times[0].end_ps);
  }
}

TEST(Engine, RanksOnOneDeviceShareItsCores) {
  plan::Program program = EmptyProgram({.tp = 2});
  for (int rank = 0; rank < 2; ++rank) {
    RoleSketch sketch(program);
    sketch.Compute(rank == 0 ? 100 : 50);
    sketch.Compute(rank == 0 ? 10 : 40);
    sketch.Give({rank});
  }
  const TinyRun run =
      RunGiven(program, {.sharing = {.cores_of_device = {1}, .device_of_class = {0, 0}}});
  // At half speed each: 50 is over at 100, when rank 0 has 50 left; with rank 1's 40 beside it that
  // op is over at 180 and rank 0 has 10 left, over at 190; then its own 10 alone.
  EXPECT_EQ(run.result.times[1].end_ps, (std::vector<std::int64_t>{100, 180}));
  EXPECT_EQ(run.result.times[0].end_ps, (std::vector<std::int64_t>{190, 200}));
  EXPECT_FALSE(run.result.deadlock);
}

TEST(Engine, RanksOnDevicesOfTheirOwnDoNotShare) {
  plan::Program program = EmptyProgram({.tp = 2});
  for (int rank = 0; rank < 2; ++rank) {
    RoleSketch sketch(program);
    sketch.Compute(100);
    sketch.Give({rank});
  }
  const TinyRun apart =
      RunGiven(program, {.sharing = {.cores_of_device = {1, 1}, .device_of_class = {0, 1}}});
  EXPECT_EQ(apart.result.end_ps, 100);
  const TinyRun two_cores =
      RunGiven(program, {.sharing = {.cores_of_device = {2}, .device_of_class = {0, 0}}});
  EXPECT_EQ(two_cores.result.end_ps, 100);
}

TEST(Engine, MatchedComputeOnASharedDeviceEndsWithItsLastMember) {
  plan::Program program = EmptyProgram({.tp = 2});
  for (int rank = 0; rank < 2; ++rank) {
    RoleSketch sketch(program);
    sketch.Compute(rank == 0 ? 60 : 20, {.matched_over = plan::kTp});
    sketch.Compute(5);
    sketch.Give({rank});
  }
  const TinyRun run =
      RunGiven(program, {.sharing = {.cores_of_device = {1}, .device_of_class = {0, 0}}});
  // 20 at half speed: 40; then 40 of the 60 left, alone: 80. Both go on at 80, at half speed: 90.
  EXPECT_EQ(run.result.times[0].end_ps, (std::vector<std::int64_t>{80, 90}));
  EXPECT_EQ(run.result.times[1].end_ps, (std::vector<std::int64_t>{80, 90}));
}

/// As GivenNetwork, with `core` of every collective and message on the host's cores.
class NetworkOnCores : public GivenNetwork {
 public:
  explicit NetworkOnCores(std::int64_t core_ps) : core_(static_cast<double>(core_ps) * 1e-12) {}
  base::Seconds CoreTime(plan::CollectiveKind, base::Bytes,
                         const topology::GroupLocality&) const override {
    return base::Seconds(core_);
  }
  base::Seconds CoreTimeOfP2P(base::Bytes) const override { return base::Seconds(core_); }

 private:
  double core_;
};

TEST(Engine, CollectivesOfASharedHostWaitWithoutACoreAndThenTakeTheirsOfEveryMember) {
  plan::Program program = EmptyProgram({.tp = 2});
  RoleSketch sketch(program);
  sketch.AllReduce(50, plan::kTp);
  sketch.Compute(40);
  sketch.Give({0, 1});
  const TinyRun run =
      RunGiven(program, {.sharing = {.cores_of_device = {1}, .device_of_class = {0, 0}}}, false,
               NetworkOnCores(20));
  // The collective waits for 30; meanwhile each kernel has half a core and does 15. Then four jobs
  // share it: 20 of each collective takes to 30 + 80 = 110, when the kernels have 40 - 15 - 20 = 5
  // left, over at 120.
  EXPECT_EQ(run.result.times[0].end_ps, (std::vector<std::int64_t>{110, 120}));
  EXPECT_EQ(run.result.times[1].end_ps, (std::vector<std::int64_t>{110, 120}));
}

TEST(Engine, MessagesOfASharedHostTakeTheirCoreTimeAtBothEnds) {
  plan::Program program = EmptyProgram({.pp = 2});
  for (const bool sends : {true, false}) {
    RoleSketch sketch(program);
    const plan::ValueId value = sketch.NewValue();
    Also also;
    if (sends) {
      sketch.Compute(0, {.produces = {value}});
      also.consumes = {value};
    } else {
      also.produces = {value};
    }
    sketch.Exchange({{.sends = sends, .delta = sends ? 1 : -1, .value = value, .bytes = 50}}, also);
    sketch.Give({sends ? 0 : 1});
  }
  const TinyRun run =
      RunGiven(program, {.sharing = {.cores_of_device = {1}, .device_of_class = {0, 0}}}, false,
               NetworkOnCores(20));
  // 30 of waiting, then 20 of both ends on one core.
  EXPECT_EQ(run.result.times[0].transfer_end_ps, (std::vector<std::int64_t>{70}));
  EXPECT_EQ(run.result.times[1].transfer_end_ps, (std::vector<std::int64_t>{70}));
}

TEST(Engine, MatchedComputeOnASharedHostGoesFromOneInnerCollectiveToTheNext) {
  plan::Program program = EmptyProgram({.tp = 2});
  for (int rank = 0; rank < 2; ++rank) {
    RoleSketch sketch(program);
    sketch.Compute(0, {.matched_over = plan::kTp});
    sketch.Give({rank});
    plan::Segment segment = GivenWork(rank == 0 ? 60 : 20).parts[0].segments[0];
    segment.collective = plan::InnerCollective{.axes = plan::kTp, .bytes = base::Bytes(50)};
    program.works.back().parts = {{.count = 2, .segments = {segment}}};
  }
  const TinyRun run =
      RunGiven(program, {.sharing = {.cores_of_device = {1}, .device_of_class = {0, 0}}}, false,
               NetworkOnCores(20));
  // Kernels: 20 at half speed to 40, 40 left alone to 80; the collective waits 30 and takes 2 · 20
  // of the core: 150. The second round the same: 300.
  EXPECT_EQ(run.result.times[0].end_ps, (std::vector<std::int64_t>{300}));
  EXPECT_EQ(run.result.times[1].end_ps, (std::vector<std::int64_t>{300}));
}

TEST(Engine, ExpandedRecordsPiecesAndEndsWhereFusedDoes) {
  plan::Program program = EmptyProgram({});
  RoleSketch sketch(program);
  sketch.Compute(5);
  sketch.Compute(5);
  sketch.Give({0});
  // Two layers of two pieces.
  program.works[1] = GivenWork(30);
  program.works[1].parts[0].count = 2;
  program.works[1].parts[0].segments.push_back(GivenWork(12).parts[0].segments[0]);
  const TinyRun fused = RunGiven(program);
  const TinyRun expanded = RunGiven(program, {.expanded = true});
  EXPECT_EQ(fused.result.times[0].end_ps, (std::vector<std::int64_t>{5, 89}));
  EXPECT_EQ(expanded.result.times[0].end_ps, fused.result.times[0].end_ps);
  // Kernels of piece p are inner 2p + 1.
  EXPECT_EQ(EventOf(expanded, 0, 1, 1), (Event{0, 1, 1, 5, 5, 35}));
  EXPECT_EQ(EventOf(expanded, 0, 1, 3), (Event{0, 1, 3, 35, 35, 47}));
  EXPECT_EQ(EventOf(expanded, 0, 1, 5), (Event{0, 1, 5, 47, 47, 77}));
  EXPECT_EQ(EventOf(expanded, 0, 1, 7), (Event{0, 1, 7, 77, 77, 89}));
}

TEST(Engine, TheSlowestMemberSetsThePaceOfEveryPiece) {
  plan::Program program = EmptyProgram({.tp = 2});
  for (int rank = 0; rank < 2; ++rank) {
    RoleSketch sketch(program);
    sketch.Compute(0, {.matched_over = plan::kTp});
    sketch.Give({rank});
  }
  // Pieces of 10 and 30 ps meet pieces of 25 and 5: 25 and 30, more than either member needs alone.
  const std::int64_t pieces[2][2] = {{10, 30}, {25, 5}};
  for (std::size_t rank = 0; rank < 2; ++rank) {
    program.works[rank] = GivenWork(pieces[rank][0]);
    program.works[rank].parts.push_back(GivenWork(pieces[rank][1]).parts[0]);
  }
  EXPECT_EQ(RunGiven(program).result.end_ps, 55);
  const TinyRun expanded = RunGiven(program, {.expanded = true});
  EXPECT_EQ(expanded.result.end_ps, 55);
  EXPECT_EQ(EventOf(expanded, 1, 0, 3), (Event{1, 0, 3, 25, 25, 30}));
}

// The host of cost_profiles.cc: 40 ps a layer forward and 1 ps an op.
TinyRun RunWithHost(const plan::Program& program, EngineOptions options = {}) {
  return RunGiven(program, std::move(options), false, GivenNetwork(), HostModel(RoundProfile()));
}

TEST(Engine, ADeviceWithoutQueuedWorkWaitsForTheHost) {
  plan::Program program = EmptyProgram({});
  RoleSketch sketch(program);
  sketch.Compute(100, {.eager_layers = 4});  // issued at 161: runs from 61
  sketch.Compute(200, {.eager_layers = 2});  // issued at 242, begun at 161: no wait
  sketch.Compute(10, {.eager_layers = 1});   // issued at 283, long before the device is free
  sketch.Give({0});
  const TinyRun run = RunWithHost(program);
  EXPECT_EQ(run.result.times[0].start_ps, (std::vector<std::int64_t>{61, 161, 361}));
  EXPECT_EQ(run.result.times[0].end_ps, (std::vector<std::int64_t>{161, 361, 371}));
  ASSERT_EQ(run.result.waits.size(), 1U);
  EXPECT_EQ(run.result.waits[0], (traces::ImposedWait{0, 0, 0, 61, false}));
  // Pieces one by one end at the same times.
  EXPECT_EQ(RunWithHost(program, {.expanded = true}).result.times[0].end_ps,
            run.result.times[0].end_ps);
}

TEST(Engine, TheHostGoesOnBehindABlockingOpAndAStep) {
  plan::Program program = EmptyProgram({}, 2);
  RoleSketch sketch(program);
  sketch.Compute(100, {.flags = plan::kBlocksHost});
  sketch.Compute(10, {.eager_layers = 2});  // 100 + 81 = 181
  sketch.Compute(20, {.flags = plan::kEndsStep});
  sketch.Compute(10, {.step = 1, .eager_layers = 1});  // 201 + 50 + 41 = 292
  sketch.Give({0});
  const TinyRun run = RunWithHost(program, {.step_overhead_ps = 50});
  EXPECT_EQ(run.result.times[0].end_ps, (std::vector<std::int64_t>{100, 181, 201, 292}));
}

TEST(Engine, ComputeBesideGradientSynchronisationTakesLonger) {
  plan::Program program = EmptyProgram({.tp = 2});
  RoleSketch sketch(program);
  const auto gradient = sketch.NewValue();
  sketch.Compute(100, {.produces = {gradient}});
  sketch.AllReduce(60, plan::kTp, {.consumes = {gradient}});  // 100 to 160
  sketch.Compute(40);                                         // 40 beside it: 10 longer
  sketch.Compute(100, {.matched_over = plan::kTp});           // the last 10: 2.5, rounded, longer
  sketch.Compute(100);
  sketch.Give({0, 1});
  const EngineOptions options{.sync_contention = 0.25};
  const TinyRun run = RunGiven(program, options, true);
  EXPECT_EQ(run.result.times[0].end_ps, (std::vector<std::int64_t>{100, 160, 150, 253, 353}));
  const std::vector<traces::Slowdown> slowdowns{{0, 2, 10}, {0, 3, 3}};
  EXPECT_EQ(run.result.slowdowns, slowdowns);
  EngineOptions expanded = options;
  expanded.expanded = true;
  EXPECT_EQ(RunGiven(program, expanded).result.times[1].end_ps, run.result.times[0].end_ps);
}

}  // namespace
}  // namespace isthmus::sim
