// How long ops take where they vary at random, and the pace of pieces then.
#include <algorithm>
#include <cmath>

#include "sim/engine/engine.h"

namespace isthmus::sim {

std::int64_t Engine::DurationOf(std::uint32_t cls, std::uint32_t op) const {
  const std::int64_t alone = variant(cls).duration_ps[op];
  if (options_.jitter == nullptr) return alone;
  const plan::Op& what = variant(cls).ops->ops[op];
  const bool computes =
      what.kind == plan::OpKind::kCompute || what.kind == plan::OpKind::kOptimizer;
  return options_.jitter->Vary(
      alone, computes ? JitterModel::Kind::kCompute : JitterModel::Kind::kCommunication,
      {lowered_.classes[cls].representative, what.step, op, 0});
}

std::int64_t Engine::TransferDurationOf(std::uint32_t cls, std::uint32_t transfer) const {
  const std::uint32_t slot = variant(cls).ops->transfers[transfer].peer;
  const MatchTable& match = *lowered_.classes[cls].matches[slot];
  const std::int64_t alone = match.duration_ps[transfer];
  if (options_.jitter == nullptr) return alone;
  const auto vary = [&](std::uint32_t side, std::uint32_t its_transfer) {
    const std::uint32_t op = variant(side).graph->OpOfTransfer(its_transfer);
    const plan::Op& what = variant(side).ops->ops[op];
    return options_.jitter->Vary(alone, JitterModel::Kind::kCommunication,
                                 {lowered_.classes[side].representative, what.step, op,
                                  its_transfer - what.first_transfer + 1});
  };
  return std::max(vary(cls, transfer),
                  vary(lowered_.classes[cls].peers[slot], match.partner[transfer]));
}

std::int64_t Engine::Stretched(std::int64_t alone_ps, const BlockPace& pace) {
  const std::int64_t total = pace.work->total_ps;
  if (pace.duration_ps == total) return alone_ps;
  return std::llround(static_cast<double>(alone_ps) * static_cast<double>(pace.duration_ps) /
                      static_cast<double>(total));
}

std::vector<Engine::BlockPace> Engine::PacesOf(const Meeting& meeting) const {
  std::vector<BlockPace> paces;
  for (const auto& [cls, op] : meeting.ops) {
    const WorkCost* work = variant(cls).work[op];
    const std::int64_t duration = DurationOf(cls, op);
    const auto known = std::find_if(paces.begin(), paces.end(),
                                    [work](const BlockPace& pace) { return pace.work == work; });
    if (known == paces.end()) {
      paces.push_back({work, duration, 0});
    } else {
      known->duration_ps = std::max(known->duration_ps, duration);
    }
  }
  return paces;
}

std::int64_t Engine::NextPiece(std::span<BlockPace> paces, std::uint32_t position) {
  std::int64_t slowest = 0;
  for (BlockPace& pace : paces) {
    if (position >= pace.work->order.size()) continue;
    const std::int64_t begin = pace.behind_ps;
    pace.behind_ps += pace.work->pieces[pace.work->order[position]].duration_ps;
    slowest = std::max(slowest, Stretched(pace.behind_ps, pace) - Stretched(begin, pace));
  }
  return slowest;
}

}  // namespace isthmus::sim
