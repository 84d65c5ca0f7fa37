#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "backend/launch/rank_environment.h"
#include "base/ids.h"
#include "plan/program/program.h"

/// What ranks tell each other through c10d's store, beside its own use.
namespace isthmus::backend {

/// The store that rank 0 keeps at the master's address. Throws base::IoError where the port is
/// taken or nobody answers within `timeout`. c10d waits for ever for a stranger that listens there
/// and says nothing, and tries twice for as long: a thread that is left to it ends with the
/// process.
c10::intrusive_ptr<c10d::Store> OpenStore(const RankEnvironment& environment,
                                          std::chrono::milliseconds timeout);

/// Compares `facts` (one "name: value" a line) of all ranks with rank 0's. Throws base::Error, on
/// every rank, that names the first rank that differs and in what.
void CheckAgreement(c10d::Store& store, base::Rank rank, int num_ranks, const std::string& facts);

/// Tells the others which GPU this rank has and returns whether each of them has one of its own:
/// the same on all ranks. Throws base::IoError where a rank doesn't say.
bool EachHasItsOwnGpu(c10d::Store& store, base::Rank rank, int num_ranks, const std::string& gpu);

/// Which op each rank is in, told through the store so that an error can say where the others were.
///
/// A thread of its own writes this rank's position twice a second when it changed. Enter() is a
/// store to memory. Lifetime: the program outlives it.
class Positions {
 public:
  Positions(const plan::Program& program, base::Rank rank,
            const c10::intrusive_ptr<c10d::Store>& store);
  ~Positions();
  Positions(const Positions&) = delete;
  Positions& operator=(const Positions&) = delete;

  void Enter(std::uint32_t op) { op_.store(op, std::memory_order_relaxed); }
  /// "rank 3 was in op 17 (forward llm mb0 block 0)", a line for each other rank.
  std::string Describe();

 private:
  void Tell();
  std::string DescribeRank(base::Rank rank);

  const plan::Program& program_;
  base::Rank rank_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::atomic<std::uint32_t> op_;  // the number of ops between steps
  std::uint32_t told_ = plan::kNone32;
  std::jthread teller_;
};

}  // namespace isthmus::backend
