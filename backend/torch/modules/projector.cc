#include "backend/torch/modules/projector.h"

#include <fmt/format.h>

#include "backend/torch/modules/differentiable.h"
#include "backend/torch/modules/linear.h"
#include "backend/torch/modules/mlp.h"
#include "backend/torch/modules/token_shards.h"

namespace isthmus::backend {
namespace {

/// Columns of all ranks of tp side by side; the gradient of the whole is equal on all of them.
at::Tensor GatherColumns(const ModuleRank& rank, const at::Tensor& part) {
  const int tp = rank.tp->size();
  if (tp == 1) return part;
  const std::int64_t width = part.size(1);
  at::Tensor whole;
  {
    const at::NoGradGuard no_grad;
    const at::Tensor own = part.detach().contiguous();
    const at::Tensor stacked = at::empty({tp * own.size(0), width}, own.options());
    rank.tp->AllGather(stacked, own).Wait();
    whole = stacked.unflatten(0, {tp, -1}).transpose(0, 1).flatten(1).contiguous();
  }
  return Differentiable(whole, {part}, [&rank, width](const at::Tensor& gradient) {
    return std::vector<at::Tensor>{
        gradient.narrow(1, rank.tp->index() * width, width).contiguous()};
  });
}

}  // namespace

TokenProjector::TokenProjector(const ModuleRank& rank, const plan::Module& encoder, std::int64_t in,
                               std::int64_t out, bool encoder_side)
    : rank_(rank),
      parameters_(encoder.name + ".projector.",
                  encoder.projector.value_or(plan::Projector{}).frozen),
      in_(in),
      encoder_side_(encoder_side) {
  const plan::Projector projector = encoder.projector.value_or(plan::Projector{});
  std::int64_t width = in;
  for (int index = 0; index < projector.num_layers; ++index) {
    const bool last = index + 1 == projector.num_layers;
    const std::int64_t inner = projector.hidden > 0 ? projector.hidden : out;
    const std::int64_t next = last ? out : inner;
    const std::string name = fmt::format("{}", index);
    layers_.push_back(&parameters_.AddCut(*rank.tp, name, index % 2, {{name, next, width}}));
    width = next;
  }
}

at::Tensor TokenProjector::Forward(const at::Tensor& x) {
  at::Tensor y = encoder_side_ ? GatherForPartial(rank_, x) : x;
  if (y.size(1) != in_) y = y.reshape({-1, in_});
  const bool gathered = encoder_side_ && rank_.sequence_parallel;
  for (std::size_t index = 0; index < layers_.size(); ++index) {
    const bool last = index + 1 == layers_.size();
    if (index % 2 == 0) {
      const bool partial = index == 0 && gathered;
      y = ColumnLinear(rank_, *layers_[index], y,
                       partial ? ColumnInput::kPartial : ColumnInput::kWhole);
      if (last) y = GatherColumns(rank_, y);
    } else {
      y = RowLinear(rank_, *layers_[index], y, RowOutput::kWhole);
    }
    if (!last) y = Gelu(y);
  }
  return y;
}

}  // namespace isthmus::backend
