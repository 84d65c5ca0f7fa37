#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "traces/trace.h"

namespace isthmus::reports {

/// The part of a step that some published tables call "forward + backward": from the first forward
/// of any rank to the end of the last backward or gradient reduction of any rank. The parameter
/// gather before it and the norms and optimizer after it are left out (modelling_mimo §2.7). The
/// first forward starts when its host begins to issue it.
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

  std::vector<std::uint32_t> role_of_class_;
  std::vector<std::vector<Bound>> bounds_;  // by role and op
  std::optional<std::int64_t> start_ps_;
  std::uint32_t first_class_ = 0;  // whose op starts at start_ps_
  std::uint32_t first_op_ = 0;
  std::optional<std::int64_t> end_ps_;
};

}  // namespace isthmus::reports
