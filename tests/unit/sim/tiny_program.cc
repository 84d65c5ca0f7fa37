#include "tests/unit/sim/tiny_program.h"

#include <utility>
#include <variant>

#include "tests/unit/sim/cost_profiles.h"
#include "topology/cluster.h"
#include "topology/presets.h"

namespace isthmus::sim {
namespace {

base::Seconds PsOf(base::Bytes bytes) {
  return base::Seconds(static_cast<double>(bytes.value()) * 1e-12);
}

}  // namespace

base::Seconds GivenCompute::Time(const plan::Kernel& kernel) const {
  return PsOf(std::get<plan::MemoryBound>(kernel).bytes);
}

base::Seconds GivenNetwork::Time(plan::CollectiveKind, base::Bytes size,
                                 const topology::GroupLocality& group) const {
  return group.num_ranks > 1 ? PsOf(size) : base::Seconds{0};
}
base::Seconds GivenNetwork::P2P(base::Bytes size, const topology::Route&) const {
  return PsOf(size);
}
base::Seconds GivenNetwork::Copy(base::Bytes size, plan::CopyDirection,
                                 const topology::Route&) const {
  return PsOf(size);
}

plan::Work GivenWork(std::int64_t duration_ps, std::int64_t transient_bytes) {
  plan::Segment segment{.name = "given"};
  if (duration_ps > 0)
    segment.kernels.emplace_back(plan::MemoryBound{.bytes = base::Bytes(duration_ps)});
  plan::Work work{.name = "given", .parts = {{.count = 1, .segments = {segment}}}};
  work.transient_bytes = base::Bytes(transient_bytes);
  return work;
}

TinyRun RunGiven(const plan::Program& program, EngineOptions options, bool fold,
                 const CollectiveModel& network, const HostModel& host) {
  const GivenCompute compute;
  const SegmentModel segments(RoundProfile(), compute, network);
  const topology::Cluster cluster(topology::H100Dgx((program.num_ranks + 7) / 8));
  TinyRun run;
  run.lowered =
      Lower(program, cluster, {.segments = &segments, .collectives = &network, .host = host}, fold);
  Engine engine(run.lowered, std::move(options), [&run](std::span<const traces::Event> events) {
    run.events.insert(run.events.end(), events.begin(), events.end());
  });
  run.result = engine.Run();
  return run;
}

plan::Program EmptyProgram(const plan::Layout& layout, int num_steps) {
  plan::Program program;
  program.num_ranks = layout.num_ranks();
  program.num_steps = num_steps;
  program.role_of_rank.assign(static_cast<std::size_t>(program.num_ranks), 0);
  program.table_of_rank = program.role_of_rank;
  plan::Module module{.name = "llm"};
  module.layout = layout;
  program.modules.push_back({.module = module, .grid = plan::Grid(layout, 1)});
  return program;
}

plan::SizeId RoleSketch::Size(std::int64_t bytes) {
  return writer_.Size({.extra = next_key_++}, base::Bytes(bytes));
}

std::uint32_t RoleSketch::WorkSlot(std::int64_t duration_ps, std::int64_t transient_bytes) {
  program_.works.push_back(GivenWork(duration_ps, transient_bytes));
  return writer_.WorkSlot({.extra = next_key_++},
                          static_cast<std::uint32_t>(program_.works.size() - 1));
}

std::uint32_t RoleSketch::Add(plan::Op op, const Also& also,
                              const std::vector<plan::Transfer>& transfers) {
  op.flags = also.flags;
  op.step = static_cast<std::int16_t>(also.step);
  return writer_.Add(op, also.consumes, also.produces, transfers);
}

std::uint32_t RoleSketch::Compute(std::int64_t duration_ps, const Also& also) {
  plan::Op op{.kind = plan::OpKind::kCompute, .lane = writer_.ComputeLane()};
  op.size = WorkSlot(duration_ps, also.transient_bytes);
  program_.works.back().eager_layers = also.eager_layers;
  if (!also.matched_over.empty()) op.group = writer_.Group({.axes = also.matched_over});
  return Add(op, also);
}

std::uint32_t RoleSketch::Optimizer(std::int64_t duration_ps, const Also& also) {
  plan::Op op{.kind = plan::OpKind::kOptimizer,
              .detail = static_cast<std::uint8_t>(plan::OptimizerAction::kStep),
              .lane = writer_.ComputeLane()};
  op.size = WorkSlot(duration_ps, also.transient_bytes);
  return Add(op, also);
}

std::uint32_t RoleSketch::AllReduce(std::int64_t duration_ps, plan::AxisSet axes,
                                    const Also& also) {
  plan::Op op{.kind = plan::OpKind::kCollective,
              .detail = static_cast<std::uint8_t>(plan::CollectiveKind::kAllReduce),
              .purpose = plan::Purpose::kGradientSync};
  op.group = writer_.Group({.axes = axes});
  op.lane = writer_.CommunicatorLane(op.group);
  op.size = Size(duration_ps);
  return Add(op, also);
}

std::uint32_t RoleSketch::Copy(std::int64_t duration_ps, plan::CopyDirection direction,
                               const Also& also) {
  plan::Op op{.kind = plan::OpKind::kCopy, .detail = static_cast<std::uint8_t>(direction)};
  op.lane = writer_.CopyLane(direction);
  op.size = Size(duration_ps);
  return Add(op, also);
}

std::uint32_t RoleSketch::Exchange(const std::vector<Message>& messages, const Also& also) {
  std::vector<plan::Transfer> transfers;
  for (const Message& message : messages) {
    transfers.push_back({.sends = message.sends,
                         .peer = writer_.Peer({.delta = static_cast<std::int16_t>(message.delta)}),
                         .value = message.value,
                         .size = Size(message.bytes)});
  }
  return Add({.kind = plan::OpKind::kP2P, .lane = writer_.P2PLane()}, also, transfers);
}

void RoleSketch::Give(const std::vector<int>& ranks) {
  for (const int rank : ranks) {
    program_.role_of_rank[static_cast<std::size_t>(rank)] =
        static_cast<std::uint32_t>(program_.roles.size());
    program_.table_of_rank[static_cast<std::size_t>(rank)] =
        static_cast<std::uint32_t>(program_.tables.size());
  }
  plan::Role role = writer_.TakeRole();
  role.stages.push_back({});
  program_.roles.push_back(std::move(role));
  program_.tables.push_back(writer_.TakeTable());
}

}  // namespace isthmus::sim
