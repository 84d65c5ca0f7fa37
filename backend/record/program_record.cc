#include "backend/record/program_record.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "plan/program/names.h"
#include "plan/program/print.h"
#include "plan/program/producers.h"

namespace isthmus::backend {
namespace {

traces::Category CategoryOf(plan::Purpose purpose) {
  switch (purpose) {
    case plan::Purpose::kModel:
      return traces::Category::kCompute;
    case plan::Purpose::kPipeline:
      return traces::Category::kPipelineComm;
    case plan::Purpose::kBoundary:
      return traces::Category::kBoundaryComm;
    case plan::Purpose::kGradientSync:
    case plan::Purpose::kParameterGather:
      return traces::Category::kDpComm;
    case plan::Purpose::kScalars:
      return traces::Category::kScalarComm;
    case plan::Purpose::kOffload:
      return traces::Category::kCopy;
    case plan::Purpose::kOptimizer:
      return traces::Category::kOptimizer;
  }
  return traces::Category::kCompute;
}

/// A role with the sizes of one table.
struct SizedRole {
  const plan::Program& program;
  const plan::Role& role;
  const plan::SizeTable& table;
  std::vector<plan::Producer> producers;
};

void AddDependencies(const SizedRole& sized, const plan::Op& op, traces::OpRecord& record) {
  for (const plan::ValueId value : sized.role.consumed_by(op)) {
    const plan::Producer& producer = sized.producers[value];
    if (producer.op == plan::kNone32) continue;
    traces::Dependency dependency{.op = producer.op};
    if (producer.transfer != plan::kNone32) {
      dependency.transfer = producer.transfer - sized.role.ops[producer.op].first_transfer + 1;
    }
    auto& known = record.dependencies;
    if (std::find(known.begin(), known.end(), dependency) == known.end())
      known.push_back(dependency);
  }
}

traces::OpRecord DescribeOp(const SizedRole& sized, const plan::Op& op) {
  traces::OpRecord record;
  record.name = plan::Describe(sized.program, sized.role, op);
  record.category = CategoryOf(op.purpose);
  record.kind = plan::ToText(op.kind);
  record.action = plan::ActionName(op);
  record.module = op.module;
  record.chunk = op.chunk;
  record.lane = op.lane;
  record.microbatch = op.microbatch;
  record.step = op.step;
  record.group = op.group == plan::kNone32 ? 0 : op.group + 1;
  record.ends_backward = (op.flags & plan::kEndsBackward) != 0;
  if (op.kind == plan::OpKind::kCompute || op.kind == plan::OpKind::kOptimizer) {
    const plan::Work& work = sized.program.works[sized.table.works[op.size]];
    record.model_flops = work.model_flops.value();
    record.hardware_flops = work.hardware_flops.value();
  } else if (op.size != plan::kNone32) {
    record.bytes = sized.table.bytes[op.size].value();
  }
  for (const plan::Transfer& transfer : sized.role.transfers_of(op)) {
    const std::int64_t bytes = sized.table.bytes[transfer.size].value();
    record.transfers.push_back({transfer.sends, transfer.peer, bytes});
    record.bytes += bytes;
  }
  AddDependencies(sized, op, record);
  return record;
}

traces::RoleRecord DescribeRole(const SizedRole& sized) {
  traces::RoleRecord record;
  record.name = sized.role.name;
  for (const plan::GroupRef& group : sized.role.groups) {
    record.groups.push_back(plan::GroupName(sized.program, group));
  }
  for (const plan::Lane& lane : sized.role.lanes) {
    const std::string kind = plan::ToText(lane.kind);
    std::string name = kind;
    std::replace(name.begin(), name.end(), '_', ' ');
    if (lane.kind == plan::LaneKind::kCommunicator) name = record.groups[lane.group];
    record.lanes.push_back({kind, name});
  }
  for (const plan::Op& op : sized.role.ops) record.ops.push_back(DescribeOp(sized, op));
  return record;
}

/// One record per role and size table in use; returns which of them each rank has.
std::vector<std::uint32_t> AddRoles(const plan::Program& program, traces::Header& header) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> known;
  std::vector<std::uint32_t> record_of_rank;
  for (std::size_t rank = 0; rank < program.role_of_rank.size(); ++rank) {
    const std::pair key{program.role_of_rank[rank], program.table_of_rank[rank]};
    const auto [at, is_new] =
        known.try_emplace(key, static_cast<std::uint32_t>(header.roles.size()));
    if (is_new) {
      const plan::Role& role = program.roles[key.first];
      header.roles.push_back(
          DescribeRole({program, role, program.tables[key.second], plan::ProducersOf(role)}));
    }
    record_of_rank.push_back(at->second);
  }
  return record_of_rank;
}

void AddClasses(const plan::Program& program, traces::Header& header) {
  const std::vector<std::uint32_t> record_of_rank = AddRoles(program, header);
  std::map<std::pair<std::string, std::vector<base::Rank>>, std::uint32_t> groups;
  for (int index = 0; index < program.num_ranks; ++index) {
    const base::Rank rank{index};
    const plan::Role& role = program.role(rank);
    traces::RankClass& record = header.classes.emplace_back();
    record.representative = rank.value();
    record.members = {rank.value()};
    record.role = record_of_rank[rank.index()];
    for (const plan::GroupRef& group : role.groups) {
      const std::vector<base::Rank> members = program.Members(rank, group);
      const bool boundary = group.kind == plan::GroupRef::Kind::kBoundary;
      // Members of a boundary's group may number it differently.
      const std::string place =
          boundary ? std::to_string(group.edge) : plan::GroupName(program, group);
      const auto [at, is_new] =
          groups.try_emplace({place, members}, static_cast<std::uint32_t>(header.groups.size()));
      if (is_new) {
        auto& classes = header.groups.emplace_back();
        for (const base::Rank member : members)
          classes.push_back(static_cast<std::uint32_t>(member.value()));
        std::sort(classes.begin(), classes.end());
      }
      record.groups.push_back(at->second);
    }
    for (const plan::PeerRef& peer : role.peers) {
      record.peers.push_back(static_cast<std::uint32_t>(program.Peer(rank, peer).value()));
    }
  }
}

void AddFlops(const plan::Program& program, traces::Header& header) {
  double model = 0;
  double hardware = 0;
  for (const traces::RankClass& rank : header.classes) {
    for (const traces::OpRecord& op : header.roles[rank.role].ops) {
      model += op.model_flops;
      hardware += op.hardware_flops;
    }
  }
  header.step_flops["model"] = model / program.num_steps;
  header.step_flops["hardware"] = hardware / program.num_steps;
}

}  // namespace

traces::Header DescribeProgram(const plan::Program& program, const RunFacts& facts) {
  traces::Header header;
  header.kind = traces::TraceKind::kMeasured;
  header.scenario_name = facts.scenario_name;
  header.scenario_hash = facts.scenario_hash;
  header.program_hash = base::HashText(plan::Hash(program));
  header.commit = facts.commit;
  header.machine = facts.machine;
  header.seed = facts.seed;
  header.placement = plan::ToText(program.placement);
  header.num_ranks = program.num_ranks;
  header.num_steps = program.num_steps;
  header.num_microbatches = program.num_microbatches;
  header.tokens_per_step = program.workload.global_batch * program.workload.sequence_length;
  header.samples_per_step = program.workload.global_batch;
  for (const plan::PlacedModule& placed : program.modules) {
    traces::ModuleRecord& record = header.modules.emplace_back();
    record.name = placed.module.name;
    record.layout = placed.module.layout ? plan::ToText(*placed.module.layout) : "inherit";
    record.first_rank = placed.grid.first_rank();
    record.num_ranks = placed.grid.num_ranks();
  }
  AddClasses(program, header);
  AddFlops(program, header);
  return header;
}

}  // namespace isthmus::backend
