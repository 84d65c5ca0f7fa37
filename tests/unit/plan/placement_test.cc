// What ranks do under each placement, on jobs small enough to say it by hand.

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/program_jobs.h"

namespace isthmus::plan {
namespace {

using tests::EncoderOf;
using tests::FindCollectives;
using tests::FindComputes;
using tests::JobOf;
using tests::LlmOf;
using tests::MembersOf;
using tests::OpAt;
using tests::ProblemsOf;

using Table = std::map<std::string, std::set<std::string>>;

/// Whom every rank sends to and receives from, and through what: "send forward" -> {"p2p 1"}.
Table DispatchOf(const Program& program, int rank_index) {
  const base::Rank rank{rank_index};
  const Role& role = program.role(rank);
  Table table;
  for (const Transfer& transfer : role.transfers) {
    const ValueKind kind = role.storages[role.values[transfer.value].storage].kind;
    const PeerRef& peer = role.peers[transfer.peer];
    table[fmt::format("{} {}", transfer.sends ? "send" : "receive",
                      kind == ValueKind::kActivation ? "forward" : "backward")]
        .insert(fmt::format("{} {}", peer.kind == PeerRef::Kind::kPipeline ? "p2p" : "NC",
                            program.Peer(rank, peer).value()));
  }
  return table;
}

// Paper §3.4: E1 PP2 on R0 and R1, E2 PP1 on R2, LLM PP3 on R3 to R5. NC: the non-colocated
// communicator of an edge; p2p: inside a module.
TEST(NonColocated, DispatchesEveryCallByItsEdge) {
  const Program program = Build(tests::JoinOfUnequalDepth());
  EXPECT_EQ(DispatchOf(program, 0),
            (Table{{"send forward", {"p2p 1"}}, {"receive backward", {"p2p 1"}}}));
  EXPECT_EQ(DispatchOf(program, 1), (Table{{"receive forward", {"p2p 0"}},
                                           {"send forward", {"NC 3"}},
                                           {"receive backward", {"NC 3"}},
                                           {"send backward", {"p2p 0"}}}));
  EXPECT_EQ(DispatchOf(program, 2),
            (Table{{"send forward", {"NC 3"}}, {"receive backward", {"NC 3"}}}));
  EXPECT_EQ(DispatchOf(program, 3), (Table{{"receive forward", {"NC 1", "NC 2"}},
                                           {"send forward", {"p2p 4"}},
                                           {"receive backward", {"p2p 4"}},
                                           {"send backward", {"NC 1", "NC 2"}}}));
  EXPECT_EQ(DispatchOf(program, 4), (Table{{"receive forward", {"p2p 3"}},
                                           {"send forward", {"p2p 5"}},
                                           {"receive backward", {"p2p 5"}},
                                           {"send backward", {"p2p 3"}}}));
  EXPECT_EQ(DispatchOf(program, 5),
            (Table{{"receive forward", {"p2p 4"}}, {"send backward", {"p2p 4"}}}));
  EXPECT_EQ(ProblemsOf(program), "");
}

TEST(NonColocated, TheJoinRunsAMicrobatchWhenAllItsTensorsAreThere) {
  const Program program = Build(tests::JoinOfUnequalDepth());
  const Role& role = program.role(base::Rank{3});
  std::map<ValueId, int> sender;
  for (const Transfer& transfer : role.transfers) {
    if (!transfer.sends)
      sender[transfer.value] = program.Peer(base::Rank{3}, role.peers[transfer.peer]).value();
  }
  const auto forwards = FindComputes(program, 3, 2, Action::kForward, 5);
  ASSERT_FALSE(forwards.empty());
  std::set<int> senders;
  for (const ValueId value : role.consumed_by(role.ops[forwards.front()])) {
    if (!sender.contains(value)) continue;
    senders.insert(sender[value]);
    EXPECT_EQ(role.storages[role.values[value].storage].microbatch, 5);
  }
  EXPECT_EQ(senders, (std::set<int>{1, 2}));
}

/// Forwards that a rank runs before its first backward.
int WarmupOf(const Program& program, int rank, int module) {
  const auto backwards = FindComputes(program, rank, module, Action::kBackward);
  std::set<int> forwards;
  for (const std::size_t index : FindComputes(program, rank, module, Action::kForward)) {
    if (index < backwards.front()) forwards.insert(OpAt(program, rank, index).microbatch);
  }
  return static_cast<int>(forwards.size()) - 1;
}

TEST(NonColocated, WarmsUpByTheRuleThatIsAskedFor) {
  Job job = tests::JoinOfUnequalDepth();
  const std::vector<std::pair<WarmupRule, std::vector<int>>> rules{
      {WarmupRule::kDistanceToSink, {4, 3, 3, 2, 1, 0}},
      {WarmupRule::kDistanceFromSource, {4, 3, 4, 2, 1, 0}}};
  for (const auto& [rule, depths] : rules) {
    job.schedule.warmup_rule = rule;
    const Program program = Build(job);
    const std::vector<int> modules{0, 0, 1, 2, 2, 2};
    for (std::size_t rank = 0; rank < depths.size(); ++rank) {
      EXPECT_EQ(WarmupOf(program, static_cast<int>(rank), modules[rank]), depths[rank]);
    }
  }
}

// One image a sample, one sample a microbatch: six of eight lanes run on nothing, in step with the
// others, and the transfers between them and the LLM are not there.
TEST(NonColocated, LanesWithoutImagesAreValid) {
  Job job = JobOf(Placement::kNonColocated,
                  {EncoderOf("vision", {.tp = 2, .dp = 8}), LlmOf({.tp = 2, .dp = 2})});
  job.modules[0].tokens_per_sample = job.modules[0].llm_tokens_per_sample = 96;
  const Program program = Build(job);
  EXPECT_EQ(ProblemsOf(program), "");
  int lanes = 0;
  for (int rank = 0; rank < 16; ++rank) {
    const bool sends =
        !program.boundaries[0].ranks[static_cast<std::size_t>(rank)].sends_forward.empty();
    EXPECT_EQ(DispatchOf(program, rank).contains("send forward"), sends);
    lanes += sends ? 1 : 0;
  }
  EXPECT_EQ(lanes, 2);
}

struct Upstream {
  Layout encoder;
  Layout llm;
  BoundaryCase boundary = BoundaryCase::kEqual;
};

// Reference §6.8: the layouts of the upstream tests of the non-colocated schedule and communicator.
TEST(NonColocated, UpstreamLayoutsAreValid) {
  const std::vector<Upstream> layouts{
      {{}, {}},
      {{}, {.pp = 3}},
      {{.tp = 2}, {.tp = 2, .pp = 3}},
      {{.tp = 2, .pp = 2}, {.tp = 2, .pp = 2}},
      {{.dp = 4}, {.tp = 2, .pp = 2}, BoundaryCase::kFanIn},
      {{.tp = 2, .pp = 2}, {.dp = 4}, BoundaryCase::kFanOut},
      {{.dp = 2}, {.tp = 2, .pp = 3}, BoundaryCase::kFanIn},
      {{.tp = 2}, {.tp = 2}},
      {{.tp = 2}, {.tp = 2, .pp = 2}},
      {{.tp = 4}, {.tp = 4}},
      {{.tp = 2, .dp = 2}, {.tp = 4}, BoundaryCase::kFanIn},
      {{.tp = 4}, {.tp = 2, .dp = 2}, BoundaryCase::kFanOut},
      {{.tp = 2, .dp = 2}, {.dp = 4}, BoundaryCase::kFanOut},
  };
  for (const Upstream& at : layouts) {
    for (const int microbatches : {1, 4}) {
      const Program program =
          Build(JobOf(Placement::kNonColocated, {EncoderOf("vision", at.encoder), LlmOf(at.llm)},
                      microbatches));
      EXPECT_EQ(program.boundaries[0].boundary_case, at.boundary) << ToText(at.encoder);
      EXPECT_EQ(ProblemsOf(program), "") << ToText(at.encoder) << " to " << ToText(at.llm);
    }
  }
}

TEST(Colocated, UpstreamLayoutsAreValid) {
  const std::vector<Upstream> layouts{
      {{.tp = 2, .dp = 4}, {.tp = 4, .dp = 2}, BoundaryCase::kFanIn},
      {{.tp = 4, .dp = 2}, {.tp = 2, .dp = 4}, BoundaryCase::kFanOut},
      {{.tp = 4, .dp = 2}, {.tp = 4, .dp = 2}, BoundaryCase::kEqual}};
  for (const Upstream& at : layouts) {
    for (const int microbatches : {1, 4}) {
      const Program program = Build(JobOf(
          Placement::kColocated, {EncoderOf("vision", at.encoder), LlmOf(at.llm)}, microbatches));
      EXPECT_EQ(program.boundaries[0].boundary_case, at.boundary);
      EXPECT_EQ(ProblemsOf(program), "");
    }
  }
}

/// The three phases on every rank of a program of a colocated encoder (module 0) and LLM (1).
void CheckThreePhases(const Program& program) {
  for (int rank = 0; rank < program.num_ranks; ++rank) {
    const auto encoder_forward = FindComputes(program, rank, 0, Action::kForward);
    const auto encoder_backward = FindComputes(program, rank, 0, Action::kBackward);
    const auto llm_forward = FindComputes(program, rank, 1, Action::kForward);
    const auto llm_backward = FindComputes(program, rank, 1, Action::kBackward);
    ASSERT_FALSE(encoder_forward.empty());
    ASSERT_FALSE(encoder_backward.empty());
    EXPECT_LT(encoder_forward.back(), llm_forward.front());
    EXPECT_LT(llm_backward.back(), encoder_backward.front());
    // Once a step, over the whole window.
    for (const std::size_t index : encoder_forward) {
      EXPECT_EQ(OpAt(program, rank, index).microbatch, -1);
    }
    // No collective of the encoder, and none of its boundary, while stages are apart.
    const auto between = tests::Find(program, rank, [](const Op& op) {
      return op.kind == OpKind::kCollective &&
             (op.purpose == Purpose::kBoundary || op.module == 0) &&
             op.purpose != Purpose::kParameterGather && op.purpose != Purpose::kScalars;
    });
    for (const std::size_t index : between) {
      EXPECT_FALSE(llm_forward.front() < index && index < llm_backward.back());
    }
  }
}

/// Bytes of the encoder's tensor that the LLM forward of microbatch 0 reads on a rank.
std::int64_t WindowRead(const Program& program, int rank) {
  const Role& role = program.role(base::Rank{rank});
  std::int64_t bytes = 0;
  const auto forward = FindComputes(program, rank, 1, Action::kForward, 0);
  for (const ValueId value : role.consumed_by(role.ops[forward.front()])) {
    const Storage& storage = role.storages[role.values[value].storage];
    if (storage.category == MemoryCategory::kBoundary) {
      bytes += program.Size(base::Rank{rank}, storage.size).value();
    }
  }
  return bytes;
}

// Encoder DP8, LLM TP2 with pp stages and 4/pp copies on the same 8 ranks: fan-in of 2·pp lanes.
TEST(Colocated, RunsInThreePhasesForBothOrdersAndAnyDepth) {
  for (const AxisOrder order : {AxisOrder::kTpCpDpPp, AxisOrder::kTpCpPpDp}) {
    for (const int pp : {1, 2, 4}) {
      const Layout llm{.tp = 2, .pp = pp, .dp = 4 / pp, .order = order};
      const Program program =
          Build(JobOf(Placement::kColocated, {EncoderOf("vision", {.dp = 8}), LlmOf(llm)}));
      EXPECT_EQ(ProblemsOf(program), "");
      EXPECT_EQ(program.boundaries[0].boundary_case, BoundaryCase::kFanIn);
      EXPECT_EQ(program.boundaries[0].factor, 2 * pp);
      CheckThreePhases(program);
      for (int rank = 0; rank < 8; ++rank) {
        const bool first = program.modules[1].grid.Coordinate(base::Rank{rank}, Axis::kPp) == 0;
        // The window of a shard: 4 samples of 768 tokens, 768 wide, 2 bytes each.
        EXPECT_EQ(WindowRead(program, rank), first ? 4 * 768 * 768 * 2 : 0) << rank;
        // Stage 0 has the gradient; the other stages' ranks get it before they can select.
        const auto broadcasts =
            FindCollectives(program, rank, CollectiveKind::kBroadcast, Purpose::kBoundary);
        EXPECT_EQ(broadcasts.size(), pp > 1 ? 1U : 0U);
      }
    }
  }
}

// Seven lanes of images on a batch of two samples with 8 images each, and lanes without any image.
TEST(Colocated, EncoderDpMayExceedTheSamples) {
  Job job = JobOf(Placement::kColocated, {EncoderOf("vision", {.dp = 8}), LlmOf({.tp = 8})}, 2);
  EXPECT_EQ(ProblemsOf(Build(job)), "");
  job.modules[0].tokens_per_sample = job.modules[0].llm_tokens_per_sample = 96;
  const Program program = Build(job);
  EXPECT_EQ(ProblemsOf(program), "");
  int with_images = 0;
  for (const RankBoundary& rank : program.boundaries[0].ranks) {
    with_images += rank.held_forward.empty() ? 0 : 1;
  }
  EXPECT_EQ(with_images, 2);
}

// Paper: GBS 288 on 72 GPUs. Four layouts of Table A2's kind.
TEST(Colocated, SeventyTwoRanksAreValidWithAHandfulOfRoles) {
  for (const Layout& llm : {Layout{.tp = 8, .dp = 9}, Layout{.tp = 4, .pp = 2, .dp = 9},
                            Layout{.tp = 2, .pp = 4, .dp = 9}, Layout{.tp = 8, .pp = 3, .dp = 3}}) {
    const Program program =
        Build(JobOf(Placement::kColocated, {EncoderOf("vision", {.dp = 72}), LlmOf(llm)}, 32));
    EXPECT_EQ(ProblemsOf(program), "") << ToText(llm);
    EXPECT_EQ(program.roles.size(), static_cast<std::size_t>(llm.pp));
  }
}

TEST(Colocated, LanesThatStraddleShardsExchangeAllToAll) {
  const Program program = Build(JobOf(
      Placement::kColocated, {EncoderOf("vision", {.tp = 2, .dp = 3}), LlmOf({.tp = 3, .dp = 2})}));
  EXPECT_EQ(program.boundaries[0].boundary_case, BoundaryCase::kIrregular);
  EXPECT_FALSE(FindCollectives(program, 0, CollectiveKind::kAllToAllV, Purpose::kBoundary).empty());
  EXPECT_EQ(ProblemsOf(program), "");
}

/// Bytes of the activation that the first forward of a module produces on a rank.
std::int64_t OutputBytes(const Program& program, int rank, int module) {
  const Role& role = program.role(base::Rank{rank});
  const auto forward = FindComputes(program, rank, module, Action::kForward, 1);
  const ValueId value = role.produced_by(role.ops[forward.front()]).front();
  return program.Size(base::Rank{rank}, role.storages[role.values[value].storage].size).value();
}

// The LLM's tokens are divided by cp, the encoder's are not: every cp rank runs it on all images.
TEST(Homogeneous, EncoderRunsOnTheFirstStageAndIsNotDividedByCp) {
  std::map<int, std::pair<std::int64_t, std::int64_t>> bytes;
  for (const int cp : {1, 2}) {
    const Program program =
        Build(JobOf(Placement::kHomogeneous,
                    {EncoderOf("vision"), LlmOf({.tp = 2, .cp = cp, .pp = 2, .dp = 2})}));
    EXPECT_EQ(ProblemsOf(program), "");
    const int first_of_stage_1 = 4 * cp;
    for (int rank = 0; rank < 8 * cp; ++rank) {
      const bool has_encoder = !FindComputes(program, rank, 0, Action::kForward).empty();
      EXPECT_EQ(has_encoder, rank < first_of_stage_1) << rank;
    }
    bytes[cp] = {OutputBytes(program, 0, 0), OutputBytes(program, 0, 1)};
    // Gradients of the encoder are summed over dp and cp together, once.
    const auto reduces =
        FindCollectives(program, 0, CollectiveKind::kReduceScatter, Purpose::kGradientSync);
    for (const std::size_t index : reduces) {
      const Op& op = OpAt(program, 0, index);
      EXPECT_EQ(MembersOf(program, 0, op),
                cp == 1 ? (std::vector<int>{0, 2}) : (std::vector<int>{0, 2, 4, 6}));
    }
  }
  // Boundary tensor: 768 tokens, 768 wide, 2 bytes, not divided by tp. LLM: 1,536 tokens, 768 wide,
  // 2 bytes, over tp 2 (sequence parallel) and cp.
  EXPECT_EQ(bytes[1], (std::pair<std::int64_t, std::int64_t>{768 * 768 * 2, 1536 * 768 * 2 / 2}));
  EXPECT_EQ(bytes[2], (std::pair<std::int64_t, std::int64_t>{768 * 768 * 2, 1536 * 768 * 2 / 4}));
}

TEST(Homogeneous, EncoderRunsRightBeforeTheMicrobatchThatNeedsIt) {
  const Program program =
      Build(JobOf(Placement::kHomogeneous, {EncoderOf("vision"), LlmOf({.pp = 2})}));
  for (int microbatch = 0; microbatch < 4; ++microbatch) {
    const auto encoder = FindComputes(program, 0, 0, Action::kForward, microbatch);
    const auto llm = FindComputes(program, 0, 1, Action::kForward, microbatch);
    EXPECT_EQ(encoder.back() + 1, llm.front());
    const auto encoder_back = FindComputes(program, 0, 0, Action::kBackward, microbatch);
    const auto llm_back = FindComputes(program, 0, 1, Action::kBackward, microbatch);
    EXPECT_LT(llm_back.back(), encoder_back.front());
  }
}

}  // namespace
}  // namespace isthmus::plan
