#include "backend/torch/modules/linear.h"

#include "backend/torch/modules/differentiable.h"

namespace isthmus::backend {
namespace {

at::Tensor WholeTokens(const ModuleRank& rank, const at::Tensor& part) {
  return at::empty({part.size(0) * rank.tp->size(), part.size(1)}, part.options());
}

at::Tensor GatherTokens(const ModuleRank& rank, const at::Tensor& part) {
  at::Tensor whole = WholeTokens(rank, part);
  rank.tp->AllGather(whole, part.contiguous()).Wait();
  return whole;
}

/// Sum over tp of what is whole: scattered over tokens, or on every rank. `sum` keeps the result.
Pending StartSum(const ModuleRank& rank, bool scatter, const at::Tensor& whole, at::Tensor& sum) {
  if (!scatter) {
    sum = whole;
    return rank.tp->AllReduce(sum);
  }
  sum = at::empty({whole.size(0) / rank.tp->size(), whole.size(1)}, whole.options());
  return rank.tp->ReduceScatter(sum, whole);
}

/// What the backward of a column-parallel layer needs. The rank is the chunk's, so that it sees
/// whether weight gradients are put off when the backward runs.
struct Column {
  const ModuleRank* rank;
  Parameter* weight;
  at::Tensor x;
  ColumnInput input;

  bool sharded() const { return input == ColumnInput::kSharded; }

  void Defer(const at::Tensor& dy) const {
    rank->deferred->push_back([column = *this, dy] {
      AccumulateProduct(*column.weight, dy,
                        column.sharded() ? GatherTokens(*column.rank, column.x) : column.x);
    });
  }

  at::Tensor Backward(const at::Tensor& dy, bool needs_dx) const {
    const bool defers = !weight->frozen && rank->deferred != nullptr;
    const bool accumulates = !weight->frozen && !defers;
    at::Tensor whole_x = x;
    Pending gather;
    if (accumulates && sharded()) {
      whole_x = WholeTokens(*rank, x);
      gather = rank->tp->AllGather(whole_x, x.contiguous());
      if (!rank->overlaps) gather.Wait();
    }
    at::Tensor dx;
    at::Tensor whole_dx;
    Pending sum;
    const auto start_sum = [&] {
      if (!needs_dx || input == ColumnInput::kPartial) return;
      sum = StartSum(*rank, sharded(), whole_dx, dx);
    };
    if (needs_dx) dx = whole_dx = dy.mm(weight->weight);
    gather.Wait();
    if (rank->overlaps) start_sum();
    if (accumulates) AccumulateProduct(*weight, dy, whole_x);
    if (!rank->overlaps) start_sum();
    if (defers) Defer(dy);
    sum.Wait();
    return dx;
  }
};

}  // namespace

void AccumulateProduct(const Parameter& weight, const at::Tensor& dy, const at::Tensor& x) {
  if (x.size(0) == 0) return;
  const at::ScalarType type = weight.main_gradient.scalar_type();
  const at::ScalarType wide = at::promote_types(type, x.scalar_type());
  const at::Tensor left = dy.to(wide).t();
  const at::Tensor right = x.to(wide);
  if (type == wide) {
    weight.main_gradient.addmm_(left, right);
  } else {
    weight.main_gradient.add_(left.mm(right));
  }
}

at::Tensor ColumnLinear(const ModuleRank& rank, Parameter& weight, const at::Tensor& x,
                        ColumnInput input) {
  Column column{&rank, &weight, x.detach(), input};
  at::Tensor y;
  {
    const at::NoGradGuard no_grad;
    y = (column.sharded() ? GatherTokens(rank, column.x) : column.x).mm(weight.weight.t());
  }
  return Differentiable(
      y, {x, rank.AnchorOf(weight)}, [column, needs_dx = x.requires_grad()](const at::Tensor& dy) {
        return std::vector<at::Tensor>{column.Backward(dy.contiguous(), needs_dx), at::Tensor()};
      });
}

at::Tensor RowLinear(const ModuleRank& rank, Parameter& weight, const at::Tensor& x,
                     RowOutput output) {
  const bool scatter = output == RowOutput::kSharded;
  const at::Tensor saved = x.detach();
  at::Tensor y;
  {
    const at::NoGradGuard no_grad;
    const at::Tensor partial = saved.mm(weight.weight.t());
    StartSum(rank, scatter, partial, y).Wait();
  }
  const auto backward = [&rank, &weight, saved, scatter,
                         needs_dx = x.requires_grad()](const at::Tensor& gradient) {
    const at::Tensor dy = scatter ? GatherTokens(rank, gradient) : gradient.contiguous();
    at::Tensor dx;
    if (needs_dx) dx = dy.mm(weight.weight);
    const auto accumulate = [&weight, dy, saved] { AccumulateProduct(weight, dy, saved); };
    if (!weight.frozen && rank.deferred != nullptr) {
      rank.deferred->push_back(accumulate);
    } else if (!weight.frozen) {
      accumulate();
    }
    return std::vector<at::Tensor>{dx, at::Tensor()};
  };
  return Differentiable(y, {x, rank.AnchorOf(weight)}, backward);
}

}  // namespace isthmus::backend
