#include "backend/torch/execute/executor.h"
#include "base/check.h"

// Collective ops: parameters, gradients, boundaries, scalars.
namespace isthmus::backend {

void Executor::Collective(const plan::Op& op) {
  switch (op.purpose) {
    case plan::Purpose::kParameterGather:
      values_.At(role_.produced_by(op).front())
          .pending.push_back(
              parameters_.at(op.module)->Gather(op.block, communicators_.Of(op.group)));
      return;
    case plan::Purpose::kGradientSync:
      return SyncGradients(op);
    case plan::Purpose::kBoundary:
      return BoundaryCollective(op);
    case plan::Purpose::kScalars:
      return SumScalar(op);
    default:
      ISTHMUS_CHECK(false, "a collective for {}", plan::ToText(op.purpose));
  }
}

void Executor::SyncGradients(const plan::Op& op) {
  ModuleParameters& parameters = *parameters_.at(op.module);
  Communicator& group = communicators_.Of(op.group);
  const plan::GroupRef& ref = role_.groups[op.group];
  if (ref.axes == plan::kTp) return parameters.SumReplicated(group);
  std::vector<Pending>& pending = values_.At(role_.produced_by(op).front()).pending;
  if (ref.kind == plan::GroupRef::Kind::kEmbedding) {
    const plan::Storage& storage = values_.StorageOf(role_.produced_by(op).front());
    pending.push_back(parameters.SumEmbedding(static_cast<std::size_t>(storage.bucket), group));
    return;
  }
  const bool scatters = op.collective() == plan::CollectiveKind::kReduceScatter;
  pending.push_back(scatters ? parameters.Reduce(op.block, group)
                             : parameters.SumReplicas(op.block, group));
}

void Executor::BoundaryCollective(const plan::Op& op) {
  const plan::ValueId produced = role_.produced_by(op).front();
  const plan::ValueKind kind = values_.StorageOf(produced).kind;
  std::vector<HeldValue*> held;
  for (const plan::ValueId value : role_.consumed_by(op)) held.push_back(&values_.At(value));
  const Way way = kind == plan::ValueKind::kActivation ? Way::kForward : Way::kBackward;
  boundaries_[role_.groups[op.group].edge].Run(way, op, held, communicators_.Of(op.group),
                                               values_.At(produced));
}

void Executor::SumScalar(const plan::Op& op) {
  HeldValue& result = values_.At(role_.produced_by(op).front());
  if (role_.groups[op.group].kind == plan::GroupRef::Kind::kWorld) {
    result.scalar = static_cast<plan::WorldScalar>(op.block);
    result.tensor = Contribution(op);
  }
  result.pending.push_back(communicators_.Of(op.group).AllReduce(result.tensor));
}

// Stays on the device: the host reads the world's sum only.
at::Tensor Executor::Contribution(const plan::Op& op) {
  const auto options = at::TensorOptions(device_.torch_device()).dtype(at::kDouble);
  if (static_cast<plan::WorldScalar>(op.block) == plan::WorldScalar::kTokens) {
    return at::full({1}, static_cast<double>(sums_.tokens), options);
  }
  at::Tensor sum = at::zeros({1}, options);
  for (const plan::ValueId value : role_.consumed_by(op)) {
    const plan::Storage& storage = values_.StorageOf(value);
    if (storage.kind != plan::ValueKind::kScalar) continue;
    const HeldValue& scalar = values_.At(value);
    // A norm that all ranks of its module have counts once.
    const int ranks = scalar.scalar == plan::WorldScalar::kNorm
                          ? program_.modules[storage.module].grid.num_ranks()
                          : 1;
    sum += scalar.tensor.to(at::kDouble) / ranks;
  }
  return sum;
}

}  // namespace isthmus::backend
