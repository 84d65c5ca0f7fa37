#include "reports/internal/window.h"

namespace isthmus::reports {

Window WindowOf(const traces::Header& header, const traces::Trailer& trailer,
                const RunRecord& record) {
  Window window{.begin = 0, .end = trailer.end_ps, .num_steps = 1};
  for (std::uint32_t index = 0; index < record.num_classes(); ++index) {
    const Cause last = record.LastEnd(index);
    if (last.found) window.end = std::max(window.end, last.ready);
    for (const traces::ImposedWait& wait : record.waits(index)) {
      window.end = std::max(window.end, wait.end_ps);
    }
  }
  const std::vector<std::int64_t>& step_ends = trailer.step_end_ps;
  if (step_ends.size() > 1 && step_ends.front() < window.end) {
    window.begin = step_ends.front();
    window.num_steps = static_cast<std::int64_t>(step_ends.size()) - 1;
  } else if (step_ends.size() <= 1) {
    window.num_steps = std::max(header.num_steps, 1);
  }
  window.end = std::max(window.end, window.begin);
  return window;
}

}  // namespace isthmus::reports
