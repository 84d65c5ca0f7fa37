#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

namespace isthmus::backend {

/// Something that a rank had to wait for is over.
struct Completion {
  enum class Kind : std::uint8_t { kTransfer, kMeeting };
  Kind kind = Kind::kTransfer;
  std::uint32_t index = 0;    // kTransfer: into Role::transfers; kMeeting: the op
  std::int64_t start_ps = 0;  // when the last partner came
};

/// Counts which ranks of a run can still move. A run in which some ranks aren't done and all of
/// them sleep is a deadlock: only a rank that is awake can wake another. Thread-safe.
class Census {
 public:
  explicit Census(int num_ranks) : num_awake_(num_ranks), num_left_(num_ranks) {}

  /// A rank that was awake has nothing to do. True: now nobody can move any more.
  bool Sleep();
  /// A sleeping rank gets something to do, from a rank that is awake.
  void Wake();
  /// A rank that was awake is done for good. True: the others can't move any more.
  bool Leave();
  /// A rank has started an op.
  void Move();
  std::uint64_t num_moves() const;

 private:
  mutable std::mutex mutex_;
  int num_awake_;
  int num_left_;  // ranks that aren't done
  std::uint64_t num_moves_ = 0;
};

/// Where one rank's thread learns that its messages and meetings are over.
///
/// Thread-safe: any thread delivers and stops; only the rank's own thread awaits. Completions come
/// out in the order delivered. Lifetime: `census` must outlive it.
class Mailbox {
 public:
  enum class Reply : std::uint8_t {
    kDelivered,
    kStopped,   // Stop() was called
    kAllSleep,  // no rank can move any more: deadlock
    kTimedOut,
  };

  explicit Mailbox(Census& census) : census_(census) {}

  void Deliver(const Completion& completion);
  /// Ends this and every later Await().
  void Stop();
  /// Waits until something is there and moves all of it to `completions` (emptied first).
  Reply Await(std::chrono::milliseconds patience, std::vector<Completion>& completions);

 private:
  Census& census_;
  std::mutex mutex_;
  std::condition_variable something_new_;
  std::vector<Completion> delivered_;
  bool sleeping_ = false;
  bool stopped_ = false;
};

}  // namespace isthmus::backend
