// Random programs broken at a random place: the validator finds every one.

#include "plan/program/validate.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "plan/program/program.h"
#include "tests/support/random_job.h"

namespace isthmus::plan {
namespace {

/// A program with one rank that has a role and a size table of its own, to be broken.
struct Victim {
  Program program;
  base::Rank rank;

  Role& role() { return program.roles.back(); }
  SizeTable& table() { return program.tables.back(); }
};

Victim MakeVictim(const Program& program, base::RandomStream& random) {
  const auto index = static_cast<std::size_t>(random.UniformInt(0, program.num_ranks - 1));
  Victim victim{program, base::Rank{index}};
  const Role role = program.role(victim.rank);
  const SizeTable table = program.table(victim.rank);
  victim.program.role_of_rank[index] = static_cast<std::uint32_t>(program.roles.size());
  victim.program.table_of_rank[index] = static_cast<std::uint32_t>(program.tables.size());
  victim.program.roles.push_back(role);
  victim.program.tables.push_back(table);
  return victim;
}

/// A random one of the ops that `wanted` accepts; null when there is none.
template <typename Wanted>
Op* PickOp(Role& role, base::RandomStream& random, Wanted wanted) {
  std::vector<Op*> candidates;
  for (Op& op : role.ops) {
    if (wanted(op)) candidates.push_back(&op);
  }
  return candidates.empty() ? nullptr : random.Pick(std::span<Op* const>(candidates));
}

/// A transfer that moves something and is not alone with its value; -1 when the op has none.
std::int64_t MovingTransfer(Victim& victim, const Op& op) {
  for (std::uint32_t at = op.first_transfer; at < op.first_transfer + op.num_transfers; ++at) {
    if (victim.program.Size(victim.rank, victim.role().transfers[at].size).value() > 0) return at;
  }
  return -1;
}

Op* PickExchange(Victim& victim, base::RandomStream& random) {
  return PickOp(victim.role(), random, [&](const Op& op) {
    return op.kind == OpKind::kP2P && MovingTransfer(victim, op) >= 0;
  });
}

// Each of these breaks the victim, or returns false when it has no such place.

bool LeaveATransferOut(Victim& victim, base::RandomStream& random) {
  Op* op = PickExchange(victim, random);
  if (op == nullptr) return false;
  const auto at = static_cast<std::size_t>(MovingTransfer(victim, *op));
  std::vector<Transfer>& transfers = victim.role().transfers;
  std::swap(transfers[at], transfers[op->first_transfer + op->num_transfers - 1U]);
  --op->num_transfers;
  return true;
}

bool ChangeATransfersSize(Victim& victim, base::RandomStream& random) {
  Op* op = PickExchange(victim, random);
  if (op == nullptr) return false;
  const auto at = static_cast<std::size_t>(MovingTransfer(victim, *op));
  victim.table().bytes[victim.role().transfers[at].size] += base::Bytes{2};
  return true;
}

bool IsShared(const Victim& victim, const Op& op) {
  const Role& role = victim.program.role(victim.rank);
  return op.kind == OpKind::kCollective &&
         victim.program.Members(victim.rank, role.groups[op.group]).size() > 1;
}

bool LeaveACollectiveOut(Victim& victim, base::RandomStream& random) {
  const Op* op = PickOp(victim.role(), random, [&](const Op& o) { return IsShared(victim, o); });
  if (op == nullptr) return false;
  std::vector<Op>& ops = victim.role().ops;
  ops.erase(ops.begin() + (op - ops.data()));
  return true;
}

bool ChangeACollective(Victim& victim, base::RandomStream& random) {
  Op* op = PickOp(victim.role(), random, [&](const Op& o) { return IsShared(victim, o); });
  if (op == nullptr) return false;
  op->detail = static_cast<std::uint8_t>(op->collective() == CollectiveKind::kAllReduce
                                             ? CollectiveKind::kReduce
                                             : CollectiveKind::kAllReduce);
  return true;
}

bool RunABackwardBeforeItsForward(Victim& victim, base::RandomStream& random) {
  const auto is = [](const Op& op, Action action) {
    return op.kind == OpKind::kCompute && op.action() == action;
  };
  Op* backward =
      PickOp(victim.role(), random, [&](const Op& op) { return is(op, Action::kBackward); });
  if (backward == nullptr) return false;
  for (Op& forward : victim.role().ops) {
    if (!is(forward, Action::kForward) || forward.step != backward->step ||
        forward.module != backward->module || forward.microbatch != backward->microbatch) {
      continue;
    }
    std::swap(forward, *backward);
    return true;
  }
  return false;
}

bool ConsumeWhatComesLater(Victim& victim, base::RandomStream& random) {
  Role& role = victim.role();
  const Op* early = PickOp(role, random, [](const Op& op) { return op.num_consumed > 0; });
  if (early == nullptr) return false;
  const Op* late =
      PickOp(role, random, [&](const Op& op) { return &op > early && op.num_produced > 0; });
  if (late == nullptr) return false;
  role.consumed[early->first_consumed] = role.produced[late->first_produced];
  return true;
}

bool ProduceTwice(Victim& victim, base::RandomStream& random) {
  Role& role = victim.role();
  const auto produces = [](const Op& op) { return op.num_produced > 0; };
  const Op* one = PickOp(role, random, produces);
  const Op* other = PickOp(role, random, [&](const Op& op) { return &op != one && produces(op); });
  if (one == nullptr || other == nullptr) return false;
  role.produced[other->first_produced] = role.produced[one->first_produced];
  return true;
}

TEST(ValidateProperty, FindsWhatIsBrokenAtARandomPlace) {
  using Break = std::function<bool(Victim&, base::RandomStream&)>;
  const std::vector<std::pair<const char*, Break>> breaks{
      {"a transfer left out", LeaveATransferOut},
      {"a transfer of another size", ChangeATransfersSize},
      {"a collective left out", LeaveACollectiveOut},
      {"a collective of another kind", ChangeACollective},
      {"a backward before its forward", RunABackwardBeforeItsForward},
      {"a value consumed before it is there", ConsumeWhatComesLater},
      {"a value produced twice", ProduceTwice}};
  std::vector<int> broken(breaks.size(), 0);
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const Job job = tests::RandomJob(seed, {.max_ranks = 16});
    const Program program = Build(job);
    base::RandomStream random(seed, "break");
    for (std::size_t kind = 0; kind < breaks.size(); ++kind) {
      Victim victim = MakeVictim(program, random);
      ASSERT_TRUE(Validate(victim.program).ok()) << tests::Summary(job);
      if (!breaks[kind].second(victim, random)) continue;
      EXPECT_FALSE(Validate(victim.program).ok())
          << breaks[kind].first << ": " << tests::Summary(job);
      ++broken[kind];
    }
  }
  for (std::size_t kind = 0; kind < breaks.size(); ++kind) {
    EXPECT_GT(broken[kind], 40) << breaks[kind].first;
  }
}

}  // namespace
}  // namespace isthmus::plan
