#include "backend/record/program_record.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "plan/program/names.h"
#include "plan/program/role_record.h"

namespace isthmus::backend {
namespace {

/// A role with the sizes of one table.
traces::RoleRecord DescribeSizedRole(const plan::Program& program, const plan::Role& role,
                                     const plan::SizeTable& table) {
  std::vector<std::int64_t> transfer_bytes;
  for (const plan::Transfer& transfer : role.transfers) {
    transfer_bytes.push_back(table.bytes[transfer.size].value());
  }
  return plan::DescribeRole(program, role, table, transfer_bytes);
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
      header.roles.push_back(
          DescribeSizedRole(program, program.roles[key.first], program.tables[key.second]));
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
      const auto [at, is_new] =
          groups.try_emplace({plan::SharedGroupName(program, group), members},
                             static_cast<std::uint32_t>(header.groups.size()));
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
