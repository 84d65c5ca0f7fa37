#include "backend/torch/execute/value_table.h"

namespace isthmus::backend {

ValueTable::ValueTable(const plan::Role& role)
    : role_(role),
      held_(role.storages.size()),
      bytes_(role.storages.size(), 0),
      last_used_by_(role.ops.size()) {
  std::vector<std::uint32_t> last(role.storages.size(), plan::kNone32);
  for (std::uint32_t index = 0; index < role.ops.size(); ++index) {
    const plan::Op& op = role.ops[index];
    for (const auto& values : {role.consumed_by(op), role.produced_by(op)}) {
      for (const plan::ValueId value : values) last[role.values[value].storage] = index;
    }
  }
  for (plan::StorageId storage = 0; storage < last.size(); ++storage) {
    if (last[storage] != plan::kNone32 && !role.storages[storage].persistent) {
      last_used_by_[last[storage]].push_back(storage);
    }
  }
}

void ValueTable::Finish(HeldValue& value) {
  for (Pending& pending : value.pending) pending.Wait();
  value.pending.clear();
  if (value.finish) std::exchange(value.finish, nullptr)(value);
}

void ValueTable::Wait(const plan::Op& op) {
  for (const plan::ValueId value : role_.consumed_by(op)) Finish(At(value));
}

void ValueTable::WaitForAll() {
  for (HeldValue& value : held_) Finish(value);
}

void ValueTable::ReleaseAfter(std::uint32_t index) {
  for (const plan::StorageId storage : last_used_by_[index]) {
    Finish(held_[storage]);
    held_[storage] = HeldValue();
    Count(storage);
  }
}

void ValueTable::CountProduced(const plan::Op& op) {
  for (const plan::ValueId value : role_.produced_by(op)) Count(role_.values[value].storage);
}

void ValueTable::Count(plan::StorageId storage) {
  const HeldValue& value = held_[storage];
  std::int64_t bytes =
      value.tensor.defined() ? static_cast<std::int64_t>(value.tensor.nbytes()) : 0;
  if (value.context) {
    for (const at::Tensor& tensor : value.context->boundary) {
      if (tensor.defined()) bytes += static_cast<std::int64_t>(tensor.nbytes());
    }
    const at::Tensor& hidden = value.context->hidden;
    if (hidden.defined()) bytes += static_cast<std::int64_t>(hidden.nbytes());
  }
  held_bytes_ += bytes - bytes_[storage];
  bytes_[storage] = bytes;
}

}  // namespace isthmus::backend
