#include "tests/unit/traces/small_trace.h"

namespace isthmus::traces {
namespace {

OpRecord ComputeOp(const char* name) {
  OpRecord op;
  op.name = name;
  op.kind = "compute";
  op.action = name;
  op.microbatch = 0;
  op.model_flops = 2.5e9;
  op.hardware_flops = 3e9;
  return op;
}

OpRecord MessageOp(const char* name, bool sends) {
  OpRecord op;
  op.name = name;
  op.category = Category::kPipelineComm;
  op.kind = "p2p";
  op.lane = 1;
  op.transfers = {{.sends = sends, .peer = 0, .bytes = 64}};
  return op;
}

RoleRecord Role(const char* name, std::vector<OpRecord> ops) {
  RoleRecord role;
  role.name = name;
  role.lanes = {{"compute", "compute"}, {"p2p", "p2p"}};
  role.ops = std::move(ops);
  return role;
}

RankClass Rank(std::int32_t rank, std::uint32_t peer) {
  RankClass rank_class;
  rank_class.representative = rank;
  rank_class.members = {rank};
  rank_class.role = static_cast<std::uint32_t>(rank);
  rank_class.peers = {peer};
  return rank_class;
}

Event At(std::uint32_t rank, std::uint32_t op, std::uint32_t inner, std::int64_t start_ps,
         std::int64_t end_ps) {
  return {.rank_class = rank,
          .op = op,
          .inner = inner,
          .issue_ps = start_ps,
          .start_ps = start_ps,
          .end_ps = end_ps};
}

}  // namespace

Trace SmallTrace() {
  Trace trace;
  trace.header.scenario_name = "small";
  trace.header.num_ranks = 2;
  trace.header.expanded = true;
  trace.header.modules.push_back({.name = "llm", .kind = "llm", .layout = "PP2"});
  OpRecord forward = ComputeOp("forward");
  forward.inner_shares = {{Category::kCompute, 2000}, {Category::kTpComm, 2000}};
  forward.block = 1;
  trace.header.roles = {
      Role("llm stage 0", {forward, MessageOp("send forward", true)}),
      Role("llm stage 1", {MessageOp("receive forward", false), ComputeOp("backward")})};
  trace.header.roles[0].blocks = {{{"qkv", Category::kCompute}, {"out", Category::kTpComm}}};
  trace.header.classes = {Rank(0, 1), Rank(1, 0)};
  trace.events = {At(0, 0, 0, 1000, 5000), At(0, 0, 1, 1000, 3000), At(0, 0, 4, 3000, 5000),
                  At(0, 1, 0, 6000, 8000), At(0, 1, 1, 6000, 8000), At(1, 0, 0, 6000, 8000),
                  At(1, 0, 1, 6000, 8000), At(1, 1, 0, 8000, 9500)};
  trace.events[6].issue_ps = 0;
  trace.counters = {{.rank_class = 1, .time_ps = 6000, .bytes = 64}};
  trace.trailer.end_ps = 9500;
  trace.trailer.step_end_ps = {9500};
  trace.trailer.waits = {
      {.rank_class = 0, .op = 0, .start_ps = 5000, .end_ps = 6000, .straggler = true}};
  trace.trailer.slowdowns = {{.rank_class = 1, .op = 1, .duration_ps = 500}};
  trace.trailer.num_ops = 4;
  trace.trailer.simulated_ranks = 2;
  return trace;
}

}  // namespace isthmus::traces
