#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reports/internal/run_record.h"
#include "reports/internal/window.h"

namespace isthmus::reports {

/// A category of the critical path: a traces::Category, or this for an imposed straggler wait.
inline constexpr int kPathStraggler = traces::kNumCategories;
inline constexpr int kNumPathCategories = traces::kNumCategories + 1;

/// An op, or the time it waited, on the critical path.
struct PathPiece {
  SpanRef ref;
  int category = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool is_wait = false;      // the op did not run yet
  bool is_slowdown = false;  // what it took longer for synchronisations beside it
};

/// A thing that something waited for. Both are on one rank.
struct PathStep {
  SpanRef cause;   // an op (a P2P op: its posting) or a transfer
  SpanRef waiter;  // the op that waited for it; of the last step the op itself
};

/// The critical path, last piece first: pieces touch and cover the window exactly.
struct CriticalPath {
  std::vector<PathPiece> pieces;
  /// What the path went through, last first, also what took no time.
  std::vector<PathStep> steps;
  SpanRef first;  // the op that waited for nothing, or for what was over before the window
};

/// Walks the path by the rules of Analysis. Cost: O(pieces · members of the communicators met).
CriticalPath FindCriticalPath(const RunRecord& record, const Window& window);

}  // namespace isthmus::reports
