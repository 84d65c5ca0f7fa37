#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "traces/trace.h"

namespace isthmus::reports {

/// The part of a step that some published tables call "forward + backward": from the first forward
/// of any rank to the end of the last backward or gradient reduction of any rank. The parameter
/// gather before it and the norms and optimizer after it are left out (modelling_mimo §2.7). The
/// step begins when the first host begins to issue its rank's first forward.
///
/// Of a run of several steps the last one counts. Not thread-safe.
class ForwardBackward final : public traces::TraceSink {
 public:
  void OnHeader(const traces::Header& header) override;
  void OnEvents(std::span<const traces::Event> events) override;
  void OnMemory(std::span<const traces::MemoryCounter>) override {}
  void OnTrailer(const traces::Trailer& trailer) override;

  /// Nothing for a run without forwards in its last step.
  std::optional<std::int64_t> duration_ps() const;

 private:
  // What an op means for the two ends of the interval.
  enum class Bound : std::uint8_t { kNone, kStarts, kEnds };

  struct FirstForward {
    std::uint32_t op = 0;
    std::int64_t start_ps = 0;
  };

  std::vector<std::uint32_t> role_of_class_;
  std::vector<std::vector<Bound>> bounds_;                // by role and op
  std::map<std::uint32_t, FirstForward> first_forwards_;  // by class
  std::optional<std::int64_t> end_ps_;
};

}  // namespace isthmus::reports
