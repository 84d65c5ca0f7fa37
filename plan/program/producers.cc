#include "plan/program/producers.h"

namespace isthmus::plan {

std::vector<Producer> ProducersOf(const Role& role) {
  std::vector<Producer> producers(role.values.size());
  for (std::uint32_t index = 0; index < role.ops.size(); ++index) {
    const Op& op = role.ops[index];
    for (const ValueId value : role.produced_by(op)) producers[value] = {.op = index};
    for (std::uint32_t at = op.first_transfer; at < op.first_transfer + op.num_transfers; ++at) {
      if (!role.transfers[at].sends) producers[role.transfers[at].value] = {index, at};
    }
  }
  return producers;
}

}  // namespace isthmus::plan
