#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace isthmus::sim {

/// A device that several ranks compute on at once: each active job gets min(1, cores/active) of a
/// core (processor sharing; waiting ranks take nothing).
///
/// Work is integer, in picoseconds of a whole core times kScale, so that rates of any share lose
/// less than a picosecond. Invariant: Advance() has been called up to the latest time seen.
/// Cost: O(active) a change; a device has a handful of ranks.
class SharedDevice {
 public:
  explicit SharedDevice(int cores) : cores_(cores) {}

  /// Starts a job of `work_ps` alone-time. Times of calls must not decrease.
  void Start(std::int64_t now_ps, std::uint32_t job, std::int64_t work_ps);
  /// When the next job will be over if nothing changes, and which (lowest number first).
  std::optional<std::pair<std::int64_t, std::uint32_t>> NextEnd() const;
  /// Ends `job` at `now_ps`; it must be NextEnd()'s.
  void End(std::int64_t now_ps, std::uint32_t job);
  /// Changes with every Start and End; tells whether a NextEnd() is still true.
  std::uint64_t epoch() const { return epoch_; }
  int num_active() const { return static_cast<int>(remaining_.size()); }

 private:
  static constexpr std::int64_t kScale = 1024;
  void Advance(std::int64_t now_ps);

  int cores_;
  std::int64_t now_ps_ = 0;
  std::uint64_t epoch_ = 0;
  std::map<std::uint32_t, std::int64_t> remaining_;  // by job, work · kScale
};

}  // namespace isthmus::sim
