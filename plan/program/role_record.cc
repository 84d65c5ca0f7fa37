#include "plan/program/role_record.h"

#include <algorithm>
#include <string>
#include <vector>

#include "plan/program/names.h"
#include "plan/program/print.h"
#include "plan/program/producers.h"

namespace isthmus::plan {
namespace {

traces::Category CategoryOf(Purpose purpose) {
  switch (purpose) {
    case Purpose::kModel:
      return traces::Category::kCompute;
    case Purpose::kPipeline:
      return traces::Category::kPipelineComm;
    case Purpose::kBoundary:
      return traces::Category::kBoundaryComm;
    case Purpose::kGradientSync:
    case Purpose::kParameterGather:
      return traces::Category::kDpComm;
    case Purpose::kScalars:
      return traces::Category::kScalarComm;
    case Purpose::kOffload:
      return traces::Category::kCopy;
    case Purpose::kOptimizer:
      return traces::Category::kOptimizer;
  }
  return traces::Category::kCompute;
}

void AddDependencies(const Role& role, const Op& op, const std::vector<Producer>& producers,
                     traces::OpRecord& record) {
  for (const ValueId value : role.consumed_by(op)) {
    const Producer& producer = producers[value];
    if (producer.op == kNone32) continue;
    traces::Dependency dependency{.op = producer.op};
    if (producer.transfer != kNone32) {
      dependency.transfer = producer.transfer - role.ops[producer.op].first_transfer + 1;
    }
    auto& known = record.dependencies;
    if (std::find(known.begin(), known.end(), dependency) == known.end())
      known.push_back(dependency);
  }
}

traces::OpRecord DescribeOp(const Program& program, const Role& role, const SizeTable& table,
                            std::span<const std::int64_t> transfer_bytes, const Op& op) {
  traces::OpRecord record;
  record.name = Describe(program, role, op);
  record.category = CategoryOf(op.purpose);
  record.kind = ToText(op.kind);
  record.action = ActionName(op);
  record.module = op.module;
  record.chunk = op.chunk;
  record.lane = op.lane;
  record.microbatch = op.microbatch;
  record.step = op.step;
  record.group = op.group == kNone32 ? 0 : op.group + 1;
  record.ends_backward = (op.flags & kEndsBackward) != 0;
  if (op.kind == OpKind::kCompute || op.kind == OpKind::kOptimizer) {
    const Work& work = program.works[table.works[op.size]];
    record.model_flops = work.model_flops.value();
    record.hardware_flops = work.hardware_flops.value();
  } else if (op.size != kNone32) {
    record.bytes = table.bytes[op.size].value();
  }
  for (std::uint32_t at = op.first_transfer; at < op.first_transfer + op.num_transfers; ++at) {
    const Transfer& transfer = role.transfers[at];
    record.transfers.push_back({transfer.sends, transfer.peer, transfer_bytes[at]});
    record.bytes += transfer_bytes[at];
  }
  return record;
}

traces::LaneRecord DescribeLane(const Lane& lane, const std::vector<std::string>& groups) {
  const std::string kind = ToText(lane.kind);
  if (lane.kind == LaneKind::kCommunicator) return {kind, groups[lane.group]};
  std::string name = kind;
  std::replace(name.begin(), name.end(), '_', ' ');
  return {kind, name};
}

}  // namespace

traces::RoleRecord DescribeRole(const Program& program, const Role& role, const SizeTable& table,
                                std::span<const std::int64_t> transfer_bytes) {
  traces::RoleRecord record;
  record.name = role.name;
  for (const GroupRef& group : role.groups) record.groups.push_back(GroupName(program, group));
  for (const Lane& lane : role.lanes) record.lanes.push_back(DescribeLane(lane, record.groups));
  const std::vector<Producer> producers = ProducersOf(role);
  for (const Op& op : role.ops) {
    record.ops.push_back(DescribeOp(program, role, table, transfer_bytes, op));
    AddDependencies(role, op, producers, record.ops.back());
  }
  return record;
}

}  // namespace isthmus::plan
