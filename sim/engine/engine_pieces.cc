// Expanded blocks: the pieces of Compute ops one by one.
#include <algorithm>

#include "sim/engine/engine.h"

namespace isthmus::sim {

void Engine::Piece(std::uint32_t cls, std::uint32_t op, std::uint32_t position, std::int64_t now) {
  const WorkCost& work = *variant(cls).work[op];
  if (position == work.order.size()) {
    std::int64_t& extra = classes_[cls].extra_ps;
    if (extra > 0) {
      heap_.Push(now + extra, {.what = What::kPiece, .a = cls, .b = position, .c = op});
      extra = 0;
      return;
    }
    Complete(cls, op, result_.times[cls].start_ps[op], result_.times[cls].start_ps[op], now);
    return;
  }
  const PieceCost& piece = work.pieces[work.order[position]];
  RecordPiece(cls, op, position, piece, now);
  heap_.Push(now + piece.duration_ps, {.what = What::kPiece, .a = cls, .b = position + 1, .c = op});
}

void Engine::GroupPiece(std::uint32_t at, std::uint32_t position, std::int64_t now) {
  Meeting& meeting = meetings_[at];
  // As PacedDuration has it: the slowest sets the pace of every piece.
  std::int64_t duration = 0;
  bool any = false;
  for (const auto& [cls, op] : meeting.ops) {
    const WorkCost& work = *variant(cls).work[op];
    if (position >= work.order.size()) continue;
    const PieceCost& piece = work.pieces[work.order[position]];
    RecordPiece(cls, op, position, piece, now);
    duration = std::max(duration, piece.duration_ps);
    any = true;
  }
  if (!any) {
    if (meeting.extra_ps == 0) {
      EndMeeting(at, now);
      return;
    }
    duration = meeting.extra_ps;
    meeting.extra_ps = 0;
  }
  heap_.Push(now + duration, {.what = What::kGroupPiece, .a = at, .b = position + 1});
}

void Engine::RecordPiece(std::uint32_t cls, std::uint32_t op, std::uint32_t position,
                         const PieceCost& piece, std::int64_t start) {
  // A piece has two numbers, kernels and collective: measured traces have both, too.
  const std::uint32_t inner = position * 2 + 1;
  if (piece.compute_ps > 0) Record({cls, op, inner, start, start, start + piece.compute_ps});
  if (piece.communication_ps > 0)
    Record({cls, op, inner + 1, start, start, start + piece.communication_ps});
}

}  // namespace isthmus::sim
