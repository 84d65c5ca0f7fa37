#include "backend/torch/execute/boundary_transform.h"

#include <algorithm>
#include <numeric>

#include "backend/torch/dtype.h"
#include "base/check.h"

namespace isthmus::backend {
namespace {

at::Tensor RowsOf(const BoundaryRows& held, const plan::Interval& tokens) {
  if (tokens.empty()) return held.rows.narrow(0, 0, 0);
  ISTHMUS_CHECK(held.tokens.begin <= tokens.begin && tokens.end <= held.tokens.end,
                "tokens [{}, {}) of [{}, {})", tokens.begin, tokens.end, held.tokens.begin,
                held.tokens.end);
  return held.rows.narrow(0, tokens.begin - held.tokens.begin, tokens.size());
}

}  // namespace

BoundaryTransform::BoundaryTransform(const plan::Program& program, std::size_t edge,
                                     base::Rank rank, at::Device device)
    : boundary_(program.boundaries[edge]),
      rank_(rank),
      device_(device),
      type_(ToTorch(plan::ActivationType(
          program.modules[static_cast<std::size_t>(program.edges[edge].from)].module.settings))) {}

at::Tensor BoundaryTransform::Zeros(std::int64_t rows) const {
  return at::zeros({rows, width()}, at::TensorOptions(device_).dtype(type_));
}

plan::Interval BoundaryTransform::Held(Way way, std::int32_t microbatch, std::int64_t rows) const {
  if (boundary_.ranks.empty()) return {0, rows};
  const plan::RankBoundary& entry = here(microbatch);
  return way == Way::kForward ? entry.held_forward : entry.held_backward;
}

BoundaryRows BoundaryTransform::Join(const std::vector<HeldValue*>& held) const {
  if (held.empty()) return {Zeros(0), {}};
  if (held.size() == 1) return {held.front()->tensor, held.front()->tokens};
  std::vector<at::Tensor> pieces;
  plan::Interval tokens;
  for (const HeldValue* piece : held) {
    if (piece->tokens.empty()) continue;
    if (pieces.empty()) tokens.begin = piece->tokens.begin;
    tokens.end = piece->tokens.end;
    pieces.push_back(piece->tensor);
  }
  return {pieces.empty() ? Zeros(0) : at::cat(pieces), tokens};
}

BoundaryRows BoundaryTransform::Needed(Way way, std::int32_t microbatch,
                                       const std::vector<HeldValue*>& held) const {
  BoundaryRows joined = Join(held);
  if (boundary_.ranks.empty()) return joined;
  const plan::RankBoundary& entry = here(microbatch);
  const plan::Interval& needed =
      way == Way::kForward ? entry.needed_forward : entry.needed_backward;
  return {RowsOf(joined, needed), needed};
}

at::Tensor BoundaryTransform::MessageRows(const HeldValue& held,
                                          const plan::Interval& tokens) const {
  return RowsOf({held.tensor, held.tokens}, tokens).contiguous();
}

const plan::BoundaryMessage& BoundaryTransform::Message(std::size_t index,
                                                        std::int32_t microbatch) const {
  const plan::RankBoundary& entry = here(microbatch);
  for (const auto* messages : {&entry.sends_forward, &entry.receives_forward, &entry.sends_backward,
                               &entry.receives_backward}) {
    if (index < messages->size()) return (*messages)[index];
    index -= messages->size();
  }
  ISTHMUS_CHECK(false, "rank {} has no message {}", rank_.value(), index);
}

void BoundaryTransform::Run(Way way, const plan::Op& op, const std::vector<HeldValue*>& held,
                            Communicator& group, HeldValue& result) const {
  const plan::RankBoundary& entry = here(op.microbatch);
  const plan::BoundaryStep& step =
      (way == Way::kForward ? entry.forward : entry.backward)[op.block];
  BoundaryRows mine = Join(held);
  mine.rows = mine.rows.contiguous();
  if (op.collective() == plan::CollectiveKind::kBroadcast)
    result.tokens = HeldByRoot(way, op.microbatch, group.members().front());
  if (step.tokens == 0) {
    if (op.collective() != plan::CollectiveKind::kBroadcast) result.tokens = mine.tokens;
    result.tensor = Zeros(0);
    return;
  }
  switch (step.collective) {
    case plan::CollectiveKind::kAllGather:
      return AllGather(step, std::move(mine), group, result);
    case plan::CollectiveKind::kAllToAllV:
      return AllToAllV(way, step, mine, group, result);
    case plan::CollectiveKind::kBroadcast:
      return Broadcast(step, mine, group, result);
    case plan::CollectiveKind::kAllReduce:
      result.tensor = mine.rows;
      result.tokens = mine.tokens;
      result.pending.push_back(group.AllReduce(mine.rows));
      return;
    case plan::CollectiveKind::kReduce:
      result.tensor = mine.rows;
      result.tokens = mine.tokens;
      result.pending.push_back(group.Reduce(mine.rows, 0));
      return;
    default:
      ISTHMUS_CHECK(false, "a boundary has no {}", plan::ToText(step.collective));
  }
}

void BoundaryTransform::AllGather(const plan::BoundaryStep& step, BoundaryRows mine,
                                  Communicator& group, HeldValue& result) const {
  const std::vector<std::int64_t>& sizes = step.member_tokens;
  const auto index = static_cast<std::size_t>(group.index());
  ISTHMUS_CHECK(mine.rows.size(0) == sizes[index], "{} rows for a slot of {}", mine.rows.size(0),
                sizes[index]);
  // Slots are in the order of the tokens, so what is in front of this rank's is the members' there.
  const std::int64_t in_front =
      std::accumulate(sizes.begin(), sizes.begin() + group.index(), std::int64_t{0});
  const std::int64_t begin = mine.tokens.begin - in_front;
  result.tokens = {begin, begin + step.tokens};
  // Gloo gathers equal parts only: shorter ones are padded, and the padding is cut out behind.
  const std::int64_t most = *std::max_element(sizes.begin(), sizes.end());
  const bool even = *std::min_element(sizes.begin(), sizes.end()) == most;
  if (mine.rows.size(0) < most) {
    mine.rows = at::cat({mine.rows, Zeros(most - mine.rows.size(0))});
  }
  result.tensor = Zeros(most * group.size());
  result.pending.push_back(group.AllGather(result.tensor, mine.rows));
  if (even) return;
  result.finish = [sizes, most](HeldValue& value) {
    std::vector<at::Tensor> parts;
    for (std::size_t slot = 0; slot < sizes.size(); ++slot) {
      parts.push_back(value.tensor.narrow(0, static_cast<std::int64_t>(slot) * most, sizes[slot]));
    }
    value.tensor = at::cat(parts);
  };
}

void BoundaryTransform::AllToAllV(Way way, const plan::BoundaryStep& step, const BoundaryRows& mine,
                                  Communicator& group, HeldValue& result) const {
  const auto parts_of = [&](base::Rank rank) -> const std::vector<plan::Interval>& {
    const plan::RankBoundary& entry = boundary_.ranks[rank.index()];
    return way == Way::kForward ? entry.all_to_all_forward : entry.all_to_all_backward;
  };
  std::vector<at::Tensor> parts;
  std::vector<std::int64_t> sent_rows;
  for (const plan::Interval& tokens : parts_of(rank_)) {
    parts.push_back(RowsOf(mine, tokens));
    sent_rows.push_back(tokens.size());
  }
  std::vector<plan::Interval> received;
  std::vector<std::int64_t> received_rows;
  for (const base::Rank member : group.members()) {
    received.push_back(parts_of(member)[static_cast<std::size_t>(group.index())]);
    received_rows.push_back(received.back().size());
  }
  // Only windows are dealt anew like this.
  const plan::RankBoundary& entry = boundary_.ranks[rank_.index()];
  result.tokens = way == Way::kForward ? entry.needed_forward : entry.needed_backward;
  result.tensor =
      Zeros(std::accumulate(received_rows.begin(), received_rows.end(), std::int64_t{0}));
  const std::int64_t program_bytes =
      step.tokens * width() * static_cast<std::int64_t>(c10::elementSize(type_));
  result.pending.push_back(
      group.AllToAllV(result.tensor, received_rows, at::cat(parts), sent_rows, program_bytes));
  // Parts come in the order of members; rows are wanted in the order of tokens.
  result.finish = [received](HeldValue& value) {
    const at::Tensor by_member = value.tensor;
    value.tensor = at::empty_like(by_member);
    std::int64_t row = 0;
    for (const plan::Interval& tokens : received) {
      if (tokens.empty()) continue;
      value.tensor.narrow(0, tokens.begin - value.tokens.begin, tokens.size())
          .copy_(by_member.narrow(0, row, tokens.size()));
      row += tokens.size();
    }
  };
}

plan::Interval BoundaryTransform::HeldByRoot(Way way, std::int32_t microbatch,
                                             base::Rank root) const {
  const plan::RankBoundary& entry = boundary_.At(root, microbatch);
  if (boundary_.colocated) return way == Way::kForward ? entry.held_forward : entry.held_backward;
  plan::Interval held;
  for (const plan::BoundaryMessage& message :
       way == Way::kForward ? entry.receives_forward : entry.receives_backward) {
    if (message.tokens.empty()) continue;
    if (held.empty()) held.begin = message.tokens.begin;
    held.end = message.tokens.end;
  }
  return held;
}

void BoundaryTransform::Broadcast(const plan::BoundaryStep& step, const BoundaryRows& mine,
                                  Communicator& group, HeldValue& result) const {
  const bool is_root = group.index() == 0;
  // A stage 0 whose backward never ran has no gradient: zeros.
  const bool has_rows = is_root && mine.rows.size(0) == step.tokens;
  result.tensor = has_rows ? mine.rows : Zeros(step.tokens);
  result.pending.push_back(group.Broadcast(result.tensor, 0));
}

}  // namespace isthmus::backend
