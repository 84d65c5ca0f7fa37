#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace isthmus::sim {

/// Whether a job is slower the more others run, beyond its share of the cores.
enum class Pace : std::uint8_t {
  kSlowedByOthers,  ///< kernels: caches, memory and hardware threads are shared too
  kAsStated,        ///< work that was measured beside others already
};

/// A device that several ranks compute on at once: each active job gets min(1, cores/active) of a
/// core (processor sharing; waiting ranks take nothing), and of that a job that is slowed by others
/// the part speeds[active - 1]; beyond the list its last entry.
///
/// Work is integer, in picoseconds of a whole core times kScale, so that rates of any share lose
/// less than a picosecond. Invariant: Advance() has been called up to the latest time seen.
/// Cost: O(active) a change; a device has a handful of ranks.
class SharedDevice {
 public:
  /// Speeds in (0, 1]; without any all are 1.
  explicit SharedDevice(int cores, const std::vector<double>& speeds = {});

  /// Starts a job of `work_ps` alone-time. Times of calls must not decrease.
  void Start(std::int64_t now_ps, std::uint32_t job, std::int64_t work_ps,
             Pace pace = Pace::kSlowedByOthers);
  /// When the next job will be over if nothing changes, and which (lowest number first).
  std::optional<std::pair<std::int64_t, std::uint32_t>> NextEnd() const;
  /// Ends `job` at `now_ps`; it must be NextEnd()'s.
  void End(std::int64_t now_ps, std::uint32_t job);
  /// Changes with every Start and End; tells whether a NextEnd() is still true.
  std::uint64_t epoch() const { return epoch_; }
  int num_active() const { return static_cast<int>(jobs_.size()); }

 private:
  // Products of work and shares exceed 64 bits for steps of hours.
  __extension__ using Wide = __int128;

  struct Job {
    Wide remaining = 0;  // work · kScale
    Pace pace = Pace::kSlowedByOthers;
  };
  /// A job's part of a core while `num_active()` are: numerator over denominator, at most 1.
  struct Rate {
    std::int64_t numerator = 1;
    std::int64_t denominator = 1;
  };

  static constexpr std::int64_t kScale = 1024;
  static constexpr std::int64_t kFullSpeed = 1 << 20;
  Rate RateOf(Pace pace) const;
  void Advance(std::int64_t now_ps);

  int cores_;
  std::vector<std::int64_t> speeds_;  // of kFullSpeed
  std::int64_t now_ps_ = 0;
  std::uint64_t epoch_ = 0;
  std::map<std::uint32_t, Job> jobs_;
};

}  // namespace isthmus::sim
