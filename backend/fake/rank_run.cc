#include "backend/fake/rank_run.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "plan/program/print.h"
#include "plan/program/producers.h"

namespace isthmus::backend {

RankRun::RankRun(const SharedRun& run, base::Rank rank, Mailbox& mailbox)
    : run_(run),
      rank_(rank),
      role_(run.program.role(rank)),
      mailbox_(mailbox),
      lanes_(role_.lanes.size()),
      ops_(role_.ops.size()),
      op_of_transfer_(role_.transfers.size(), plan::kNone32),
      transfer_over_(role_.transfers.size(), false),
      ops_by_lane_(role_.lanes.size()) {
  for (const plan::Producer& producer : plan::ProducersOf(role_)) {
    is_ready_.push_back(producer.op == plan::kNone32);
  }
  for (std::uint32_t index = 0; index < role_.ops.size(); ++index) {
    const plan::Op& op = role_.ops[index];
    std::fill_n(op_of_transfer_.begin() + op.first_transfer, op.num_transfers, index);
  }
}

RankRun::End RankRun::Run() {
  JoinAll();
  std::vector<Completion> completions;
  while (true) {
    Advance();
    if (done()) return run_.census.Leave() ? End::kDeadlock : End::kDone;
    const std::uint64_t moves = run_.census.num_moves();
    switch (mailbox_.Await(run_.options.patience, completions)) {
      case Mailbox::Reply::kDelivered:
        break;
      case Mailbox::Reply::kStopped:
        return End::kStopped;
      case Mailbox::Reply::kAllSleep:
        return End::kDeadlock;
      case Mailbox::Reply::kTimedOut:
        if (run_.census.num_moves() == moves) return End::kTimedOut;
        break;
    }
    for (const Completion& completion : completions) Handle(completion);
  }
}

void RankRun::JoinAll() {
  std::vector<bool> meets_for_compute(role_.groups.size(), false);
  for (const plan::Op& op : role_.ops) {
    if (op.kind == plan::OpKind::kCompute && op.group != plan::kNone32) {
      meets_for_compute[op.group] = true;
    }
  }
  for (std::size_t index = 0; index < role_.groups.size(); ++index) {
    const plan::GroupRef& group = role_.groups[index];
    collectives_.push_back(&run_.fabric.Join(rank_, group, plan::OpKind::kCollective));
    computes_.push_back(meets_for_compute[index]
                            ? &run_.fabric.Join(rank_, group, plan::OpKind::kCompute)
                            : nullptr);
  }
  for (const plan::PeerRef& peer : role_.peers) {
    const base::Rank other = run_.program.Peer(rank_, peer);
    sends_.push_back(&run_.fabric.Between(rank_, other));
    receives_.push_back(&run_.fabric.Between(other, rank_));
  }
}

void RankRun::Advance() {
  bool moved = true;
  while (moved) {
    moved = false;
    Issue();
    for (LaneState& lane : lanes_) {
      while (StartFirst(lane)) moved = true;
    }
  }
}

void RankRun::Issue() {
  while (!blocked_on_ && next_to_issue_ < role_.ops.size()) {
    const std::uint32_t index = next_to_issue_;
    const plan::Op& op = role_.ops[index];
    if (run_.options.in_order_host && !HasValues(op)) return;
    ++next_to_issue_;
    ops_[index].state = State::kOnLane;
    lanes_[op.lane].ops.push_back(index);
    if (BlocksHost(op)) blocked_on_ = index;
  }
}

bool RankRun::BlocksHost(const plan::Op& op) const {
  if ((op.flags & plan::kBlocksHost) != 0) return true;
  if (!run_.options.in_order_host) return false;
  const bool sums_over_tp =
      op.purpose == plan::Purpose::kGradientSync && role_.groups[op.group].axes == plan::kTp;
  return op.kind == plan::OpKind::kCompute || sums_over_tp;
}

bool RankRun::StartFirst(LaneState& lane) {
  if (lane.busy || lane.ops.empty()) return false;
  const std::uint32_t op = lane.ops.front();
  if (!HasValues(role_.ops[op])) return false;
  Start(op);
  return true;
}

bool RankRun::HasValues(const plan::Op& op) const {
  const auto consumed = role_.consumed_by(op);
  return std::all_of(consumed.begin(), consumed.end(),
                     [this](plan::ValueId value) { return is_ready_[value]; });
}

void RankRun::Start(std::uint32_t index) {
  const plan::Op& op = role_.ops[index];
  OpState& here = ops_[index];
  here.state = State::kStarting;
  lanes_[op.lane].busy = true;
  if (run_.options.before_op) run_.options.before_op(rank_, index);
  run_.census.Move();
  ops_by_lane_[op.lane].push_back(index);
  here.state = State::kRunning;
  here.issue_ps = run_.clock.now_ps();
  const bool is_empty = op.kind == plan::OpKind::kCollective && SizeOf(op.size) == base::Bytes{0};
  if (op.kind == plan::OpKind::kP2P) {
    Post(index);
  } else if (op.kind == plan::OpKind::kCompute && op.group != plan::kNone32) {
    Meet(index, *computes_[op.group]);
  } else if (op.kind == plan::OpKind::kCollective && !is_empty) {
    Meet(index, *collectives_[op.group]);
  } else {
    EndOnLane(index, here.issue_ps, run_.clock.now_ps());
    Finish(index);
  }
}

void RankRun::Meet(std::uint32_t index, Communicator& communicator) {
  const plan::Op& op = role_.ops[index];
  const bool moves_bytes = op.kind == plan::OpKind::kCollective;
  communicator.Arrive({.rank = rank_,
                       .kind = op.detail,
                       .bytes = moves_bytes ? SizeOf(op.size) : base::Bytes{0},
                       .mailbox = &mailbox_,
                       .op = index});
}

void RankRun::Post(std::uint32_t index) {
  const plan::Op& op = role_.ops[index];
  OpState& here = ops_[index];
  EndOnLane(index, here.issue_ps, here.issue_ps);
  const auto for_each_transfer = [&](bool sends, auto&& action) {
    for (std::uint32_t at = op.first_transfer; at < op.first_transfer + op.num_transfers; ++at) {
      if (role_.transfers[at].sends == sends) action(at, role_.transfers[at]);
    }
  };
  std::vector<std::uint32_t> posted;
  for (const bool sends : {false, true}) {  // receives first
    for_each_transfer(sends, [&](std::uint32_t at, const plan::Transfer& transfer) {
      if (SizeOf(transfer.size) > base::Bytes{0}) {
        posted.push_back(at);
        return;
      }
      transfer_over_[at] = true;
      if (!transfer.sends) is_ready_[transfer.value] = true;
    });
  }
  here.transfers_left = static_cast<std::uint16_t>(posted.size());
  if (posted.empty()) Finish(index);
  for (const std::uint32_t at : posted) {
    const plan::Transfer& transfer = role_.transfers[at];
    Channel& channel = *(transfer.sends ? sends_ : receives_)[transfer.peer];
    channel.Post(transfer.sends ? Channel::Side::kSend : Channel::Side::kReceive,
                 {.bytes = SizeOf(transfer.size), .mailbox = &mailbox_, .transfer = at});
  }
}

void RankRun::Handle(const Completion& completion) {
  if (completion.kind == Completion::Kind::kTransfer) {
    EndTransfer(completion.index, completion.start_ps);
  } else {
    EndOnLane(completion.index, completion.start_ps, run_.clock.now_ps());
    Finish(completion.index);
  }
}

void RankRun::EndTransfer(std::uint32_t at, std::int64_t start_ps) {
  const plan::Transfer& transfer = role_.transfers[at];
  const std::uint32_t index = op_of_transfer_[at];
  const std::uint32_t inner = at - role_.ops[index].first_transfer + 1;
  transfer_over_[at] = true;
  if (!transfer.sends) is_ready_[transfer.value] = true;
  events_.push_back({.rank_class = static_cast<std::uint32_t>(rank_.value()),
                     .op = index,
                     .inner = inner,
                     .issue_ps = ops_[index].issue_ps,
                     .start_ps = start_ps,
                     .end_ps = run_.clock.now_ps()});
  if (--ops_[index].transfers_left == 0) Finish(index);
}

void RankRun::EndOnLane(std::uint32_t index, std::int64_t start_ps, std::int64_t end_ps) {
  LaneState& lane = lanes_[role_.ops[index].lane];
  ISTHMUS_CHECK(lane.busy && lane.ops.front() == index, "op {} isn't the first of its lane", index);
  lane.ops.pop_front();
  lane.busy = false;
  events_.push_back({.rank_class = static_cast<std::uint32_t>(rank_.value()),
                     .op = index,
                     .issue_ps = ops_[index].issue_ps,
                     .start_ps = start_ps,
                     .end_ps = end_ps});
}

void RankRun::Finish(std::uint32_t index) {
  const plan::Op& op = role_.ops[index];
  ops_[index].state = State::kDone;
  ++num_done_;
  if (blocked_on_ == index) blocked_on_.reset();
  if (op.kind == plan::OpKind::kP2P) return;  // its values come with its transfers
  for (const plan::ValueId value : role_.produced_by(op)) is_ready_[value] = true;
}

std::string RankRun::Position() const {
  const auto first = std::find_if(ops_.begin(), ops_.end(),
                                  [](const OpState& op) { return op.state != State::kDone; });
  ISTHMUS_CHECK(first != ops_.end(), "rank {} is done", rank_.value());
  const auto index = static_cast<std::uint32_t>(first - ops_.begin());
  return fmt::format("rank {} is in op {} ({}), which {}", rank_.value(), index,
                     plan::Describe(run_.program, role_, role_.ops[index]), WhatItWaitsFor(index));
}

std::string RankRun::WhatItWaitsFor(std::uint32_t index) const {
  const plan::Op& op = role_.ops[index];
  if (ops_[index].state == State::kAhead) return "is not issued yet";
  if (ops_[index].state == State::kStarting) return "has not come back";
  if (ops_[index].state == State::kOnLane) {
    return HasValues(op) ? "waits for its lane" : "waits for a value";
  }
  if (op.kind != plan::OpKind::kP2P) {
    return op.group == plan::kNone32
               ? "is running"
               : fmt::format("waits for the other members of {}", collectives_[op.group]->name());
  }
  for (std::uint32_t at = op.first_transfer; at < op.first_transfer + op.num_transfers; ++at) {
    const plan::Transfer& transfer = role_.transfers[at];
    if (transfer_over_[at]) continue;
    return transfer.sends
               ? fmt::format("waits for rank {} to receive", sends_[transfer.peer]->to().value())
               : fmt::format("waits for rank {} to send", receives_[transfer.peer]->from().value());
  }
  return "is running";
}

}  // namespace isthmus::backend
