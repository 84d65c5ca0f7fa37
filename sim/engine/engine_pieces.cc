// Expanded blocks: the pieces of Compute ops one by one.
#include <algorithm>

#include "sim/engine/engine.h"

namespace isthmus::sim {

void Engine::Piece(std::uint32_t cls, std::uint32_t op, std::uint32_t position, std::int64_t now) {
  const WorkCost& work = *variant(cls).work[op];
  if (position == work.order.size()) {
    std::int64_t& extra = classes_[cls].extra_ps;
    if (extra > 0) {
      Push(now, extra, {.what = What::kPiece, .a = cls, .b = position, .c = op});
      extra = 0;
      return;
    }
    Complete(cls, op, result_.times[cls].start_ps[op], result_.times[cls].start_ps[op], now);
    return;
  }
  if (position == 0) classes_[cls].pace = {&work, DurationOf(cls, op), 0};
  const std::int64_t duration = NextPiece({&classes_[cls].pace, 1}, position);
  Push(now, duration, {.what = What::kPiece, .a = cls, .b = position + 1, .c = op});
  RecordPiece(cls, op, position, duration, now);
}

void Engine::GroupPiece(std::uint32_t at, std::uint32_t position, std::int64_t now) {
  Meeting& meeting = meetings_[at];
  // As PacedDuration has it: the slowest sets the pace of every piece.
  if (position == 0) meeting.paces = PacesOf(meeting);
  std::int64_t duration = NextPiece(meeting.paces, position);
  bool any = false;
  for (const auto& [cls, op] : meeting.ops) {
    if (position >= variant(cls).work[op]->order.size()) continue;
    RecordPiece(cls, op, position, duration, now);
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
  Push(now, duration, {.what = What::kGroupPiece, .a = at, .b = position + 1});
}

void Engine::RecordPiece(std::uint32_t cls, std::uint32_t op, std::uint32_t position,
                         std::int64_t duration, std::int64_t start) {
  const WorkCost& work = *variant(cls).work[op];
  const PieceCost& piece = work.pieces[work.order[position]];
  const BlockPace own{&work, DurationOf(cls, op), 0};
  const auto end = [&](std::int64_t alone_ps) {
    return start + std::min(Stretched(alone_ps, own), duration);
  };
  // A piece has two numbers, kernels and collective: measured traces have both, too.
  const std::uint32_t inner = position * 2 + 1;
  if (piece.compute_ps > 0) Record({cls, op, inner, start, start, end(piece.compute_ps)});
  if (piece.communication_ps > 0)
    Record({cls, op, inner + 1, start, start, end(piece.communication_ps)});
}

}  // namespace isthmus::sim
