// Over NCCL a rank's messages share one communicator and so one stream: the messages of an op go
// together, and an op's wait for those of the op before. Programs must not deadlock there.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plan/program/names.h"
#include "plan/program/print.h"
#include "plan/program/program.h"
#include "tests/support/random_job.h"
#include "tests/support/small_jobs.h"

namespace isthmus::plan {
namespace {

/// All ranks of a program on GPUs: a compute stream that takes the ops in the host's order and
/// waits for the values each consumes, a stream for messages, one a communicator. Posted work
/// starts when the compute stream has come to its op and what was posted on its own stream before
/// is over; it is over when every partner's has started.
class GpuStreams {
 public:
  /// How the messages of an op go: in one launch, or each in one of its own, receives first.
  enum class Post : std::uint8_t { kTogether, kOneByOne };
  explicit GpuStreams(const Program& program, Post post = Post::kTogether)
      : program_(program), post_(post) {
    for (int rank = 0; rank < program.num_ranks; ++rank) {
      ranks_.emplace_back(program.role(base::Rank{rank}));
    }
  }

  /// Runs to the end; or says which ops ranks are stuck in.
  std::string Run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < program_.num_ranks; ++rank) moved |= Advance(rank);
      moved |= FinishGroups() || FinishCollectives();
    }
    std::string stuck;
    for (int rank = 0; rank < program_.num_ranks; ++rank) {
      const RankState& state = ranks_[static_cast<std::size_t>(rank)];
      if (state.position == state.role->ops.size()) continue;
      stuck += fmt::format("rank {}: {}\n", rank,
                           Describe(program_, *state.role, state.role->ops[state.position]));
    }
    return stuck;
  }

 private:
  using Communicator = std::pair<std::string, std::vector<base::Rank>>;
  struct RankState {
    explicit RankState(const Role& of) : role(&of), is_late(of.values.size(), false) {}
    const Role* role;
    std::size_t position = 0;   // ops that the compute stream has come past
    std::vector<bool> is_late;  // values that posted work makes and that aren't there yet
    std::vector<std::vector<std::uint32_t>> groups;  // transfers of a launch, as posted
    std::size_t first_group = 0;                     // the one on the stream's head
    std::map<Communicator, std::vector<std::uint32_t>> collectives;
  };

  bool IsReady(const RankState& state, const Op& op) const {
    for (const ValueId value : state.role->consumed_by(op)) {
      if (state.is_late[value]) return false;
    }
    return true;
  }

  bool Advance(int rank) {
    RankState& state = ranks_[static_cast<std::size_t>(rank)];
    const std::size_t before = state.position;
    while (state.position < state.role->ops.size()) {
      const auto index = static_cast<std::uint32_t>(state.position);
      const Op& op = state.role->ops[index];
      if (!IsReady(state, op)) break;
      if (op.kind == OpKind::kP2P) PostMessages(op, state);
      if (op.kind == OpKind::kCollective) {
        const GroupRef& group = state.role->groups[op.group];
        state
            .collectives[{SharedGroupName(program_, group),
                          program_.Members(base::Rank{rank}, group)}]
            .push_back(index);
      }
      if (op.kind == OpKind::kP2P || op.kind == OpKind::kCollective) {
        for (const ValueId value : state.role->produced_by(op)) state.is_late[value] = true;
      }
      ++state.position;
    }
    return state.position > before;
  }

  void PostMessages(const Op& op, RankState& state) const {
    std::vector<std::uint32_t> transfers;
    for (const bool sends : {false, true}) {
      for (std::uint32_t at = op.first_transfer; at < op.first_transfer + op.num_transfers; ++at) {
        if (state.role->transfers[at].sends == sends) transfers.push_back(at);
      }
    }
    if (post_ == Post::kTogether) {
      state.groups.push_back(std::move(transfers));
      return;
    }
    for (const std::uint32_t at : transfers) state.groups.push_back({at});
  }

  /// Messages of one pair and direction match in order; their number so far tells which it is.
  using Key = std::tuple<int, int, int>;  // from, to, number
  bool FinishGroups() {
    // Everything at the heads of the streams has started.
    std::map<Key, int> ends;
    std::vector<std::vector<Key>> of_rank(ranks_.size());
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const RankState& state = ranks_[rank];
      if (state.first_group == state.groups.size()) continue;
      std::map<std::pair<int, int>, int> counts = counts_[rank];
      for (const std::uint32_t at : state.groups[state.first_group]) {
        const Transfer& transfer = state.role->transfers[at];
        const base::Rank self{rank};
        if (program_.Size(self, transfer.size).value() == 0) continue;
        const int peer = program_.Peer(self, state.role->peers[transfer.peer]).value();
        const auto pair =
            transfer.sends ? std::pair{self.value(), peer} : std::pair{peer, self.value()};
        const Key key{pair.first, pair.second, counts[pair]++};
        of_rank[rank].push_back(key);
        ++ends[key];
      }
    }
    bool moved = false;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      RankState& state = ranks_[rank];
      if (state.first_group == state.groups.size()) continue;
      bool all_met = true;
      for (const Key& key : of_rank[rank]) all_met &= ends[key] == 2 || over_.contains(key);
      if (!all_met) continue;
      for (const Key& key : of_rank[rank]) {
        over_.insert(key);
        ++counts_[rank][{std::get<0>(key), std::get<1>(key)}];
      }
      for (const std::uint32_t at : state.groups[state.first_group++]) {
        const Transfer& transfer = state.role->transfers[at];
        if (!transfer.sends) state.is_late[transfer.value] = false;
      }
      moved = true;
    }
    return moved;
  }

  bool FinishCollectives() {
    bool moved = false;
    std::set<Communicator> groups;
    for (const RankState& state : ranks_) {
      for (const auto& [group, posted] : state.collectives) groups.insert(group);
    }
    for (const Communicator& group : groups) {
      std::size_t& done = collectives_done_[group];
      bool all = true;
      for (const base::Rank member : group.second) {
        all &= ranks_[member.index()].collectives[group].size() > done;
      }
      if (!all) continue;
      for (const base::Rank member : group.second) {
        RankState& state = ranks_[member.index()];
        Finish(state, state.collectives[group][done]);
      }
      ++done;
      moved = true;
    }
    return moved;
  }

  static void Finish(RankState& state, std::uint32_t op) {
    for (const ValueId value : state.role->produced_by(state.role->ops[op])) {
      state.is_late[value] = false;
    }
  }

  const Program& program_;
  Post post_;
  std::vector<RankState> ranks_;
  std::map<std::size_t, std::map<std::pair<int, int>, int>> counts_;  // by rank: messages over
  std::set<Key> over_;
  std::map<Communicator, std::size_t> collectives_done_;
};

TEST(MessagesOnOneStream, SmallJobsComeToTheirEnd) {
  for (const Job& job : tests::SmallJobs()) {
    const Program program = Build(job);
    EXPECT_EQ(GpuStreams(program).Run(), "") << job.name;
  }
}

TEST(MessagesOnOneStream, RandomJobsComeToTheirEnd) {
  for (std::uint64_t seed = 7'000; seed < 7'600; ++seed) {
    const Job job =
        tests::RandomJob(seed, {.max_ranks = 16, .max_steps = 1, .uneven_samples = seed % 3 == 0});
    const Program program = Build(job);
    ASSERT_EQ(GpuStreams(program).Run(), "") << tests::Summary(job);
  }
}

// Two stages in their steady state: each posts the receive from the other first, and waits for it
// in front of its own send.
TEST(MessagesOnOneStream, OneByOneTheyWouldWaitForEachOther) {
  const Job job =
      tests::SmallJob("pipeline", Placement::kHomogeneous, {tests::SmallLlm({.pp = 2})});
  const Program program = Build(job);
  EXPECT_EQ(GpuStreams(program).Run(), "");
  EXPECT_NE(GpuStreams(program, GpuStreams::Post::kOneByOne).Run(), "");
}

}  // namespace
}  // namespace isthmus::plan
