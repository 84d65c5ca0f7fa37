#include "plan/build/rank_emitter.h"

// Collectives of boundary communicators.
namespace isthmus::plan {

base::Bytes RankEmitter::BoundaryBytes(int edge, std::int64_t tokens) const {
  const Module& encoder =
      job_.modules[static_cast<std::size_t>(job_.edges[static_cast<std::size_t>(edge)].from)];
  const std::int64_t width = placed_.boundaries[static_cast<std::size_t>(edge)].width;
  return base::Bytes{tokens * width * BytesOf(ActivationType(encoder.settings)).value()};
}

Storage RankEmitter::BoundaryStorage(int edge, Way way, int microbatch, SizeId size) const {
  return {.kind = way == Way::kForward ? ValueKind::kActivation : ValueKind::kGradient,
          .category = MemoryCategory::kBoundary,
          .module = static_cast<std::uint16_t>(job_.edges[static_cast<std::size_t>(edge)].from),
          .microbatch = microbatch,
          .size = size};
}

std::vector<ValueId> RankEmitter::RunBoundarySteps(int edge, Way way, std::vector<ValueId> held,
                                                   int microbatch) {
  const RankBoundary& here = BoundaryOf(edge, microbatch);
  const bool forward = way == Way::kForward;
  const std::vector<BoundaryStep>& steps = forward ? here.forward : here.backward;
  for (std::size_t index = 0; index < steps.size(); ++index) {
    const BoundaryStep& step = steps[index];
    // A select is a view of what is held; transfers are the exchange's.
    if (step.kind != BoundaryStep::Kind::kCollective) continue;
    Op op{.kind = OpKind::kCollective,
          .detail = static_cast<std::uint8_t>(step.collective),
          .purpose = Purpose::kBoundary};
    op.group = writer_.Group({.kind = GroupRef::Kind::kBoundary,
                              .edge = static_cast<std::uint16_t>(edge),
                              .index = step.group});
    op.lane = writer_.CommunicatorLane(op.group);
    op.module = static_cast<std::uint16_t>(job_.edges[static_cast<std::size_t>(edge)].from);
    op.microbatch = microbatch;
    op.step = static_cast<std::int16_t>(state_.step);
    op.block = static_cast<std::uint16_t>(index);
    const SlotKey key{.what = kSlotBoundaryCollective,
                      .module = static_cast<std::uint16_t>(edge),
                      .block = static_cast<std::uint16_t>(index),
                      .extra = forward ? 0U : 1U,
                      .microbatch = SizeMicrobatch(edge, microbatch)};
    op.size = writer_.Size(key, BoundaryBytes(edge, step.tokens));
    const bool in_place = (step.collective == CollectiveKind::kAllReduce ||
                           step.collective == CollectiveKind::kReduce ||
                           step.collective == CollectiveKind::kBroadcast) &&
                          held.size() == 1;
    ValueId after = 0;
    if (in_place) {
      after = writer_.NextVersion(held.front());
    } else {
      const SlotKey result{.what = kSlotBoundary,
                           .module = static_cast<std::uint16_t>(edge),
                           .block = static_cast<std::uint16_t>(index),
                           .extra = forward ? 2U : 3U,
                           .microbatch = SizeMicrobatch(edge, microbatch)};
      after = writer_.AddValue(BoundaryStorage(
          edge, way, microbatch, writer_.Size(result, BoundaryBytes(edge, step.tokens))));
    }
    writer_.Add(op, held, {after});
    held = {after};
  }
  return held;
}

}  // namespace isthmus::plan
