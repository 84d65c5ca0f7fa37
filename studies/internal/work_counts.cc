#include "studies/internal/work_counts.h"

#include <set>
#include <utility>

namespace isthmus::studies::internal {
namespace {

bool HasWork(const plan::Op& op) {
  return op.kind == plan::OpKind::kCompute || op.kind == plan::OpKind::kOptimizer;
}

}  // namespace

std::vector<WorkCounts> CountWorks(const plan::Program& program) {
  std::vector<WorkCounts> kinds;
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;  // role, table
  for (std::size_t rank = 0; rank < program.role_of_rank.size(); ++rank) {
    const auto kind = std::pair(program.role_of_rank[rank], program.table_of_rank[rank]);
    if (!seen.insert(kind).second) continue;
    const plan::SizeTable& table = program.tables[kind.second];
    WorkCounts& counts = kinds.emplace_back();
    for (const plan::Op& op : program.roles[kind.first].ops) {
      if (HasWork(op)) ++counts[table.works[op.size]];
    }
  }
  return kinds;
}

}  // namespace isthmus::studies::internal
