#include "backend/torch/modules/loss.h"

#include <algorithm>
#include <limits>

#include "backend/torch/modules/differentiable.h"

namespace isthmus::backend {

namespace {

/// What the backward needs of the softmax over all ranks' columns.
struct Softmax {
  at::Tensor probabilities;  // of this rank's columns
  at::Tensor column;         // [tokens, 1]: the label's, where it is here
  at::Tensor here;           // whether it is, and counts
  at::Tensor mask;

  at::Tensor Loss(const ModuleRank& rank, const at::Tensor& logits, const at::Tensor& labels);
  /// Gradient of the logits. Changes the probabilities: a graph runs once.
  at::Tensor Backward(const at::Tensor& gradient) const;
};

at::Tensor Softmax::Loss(const ModuleRank& rank, const at::Tensor& logits,
                         const at::Tensor& labels) {
  const std::int64_t columns = logits.size(1);
  const std::int64_t first = rank.tp->index() * columns;
  at::Tensor powers = logits.to(rank.statistics, /*non_blocking=*/false, /*copy=*/true);
  const std::int64_t real =
      std::clamp<std::int64_t>(rank.transformer().vocab_size - first, 0, columns);
  powers.narrow(1, real, columns - real).fill_(-std::numeric_limits<double>::infinity());

  const at::Tensor most = powers.amax(1);
  rank.tp->AllReduce(most, Communicator::Reduction::kMax).Wait();
  powers.sub_(most.unsqueeze(1));
  const at::Tensor local = labels - first;
  here = local.ge(0).logical_and(local.lt(columns)).logical_and(mask);
  column = local.clamp(0, columns - 1).unsqueeze(1);
  const at::Tensor target =
      powers.gather(1, column).squeeze(1).masked_fill_(here.logical_not(), 0.0);
  rank.tp->AllReduce(target).Wait();
  powers.exp_();
  const at::Tensor sum = powers.sum(1);
  rank.tp->AllReduce(sum).Wait();
  probabilities = powers.div_(sum.unsqueeze(1));
  return sum.log().sub_(target).masked_fill_(mask.logical_not(), 0.0).sum();
}

at::Tensor Softmax::Backward(const at::Tensor& gradient) const {
  const at::ScalarType type = probabilities.scalar_type();
  at::Tensor result = probabilities;
  result.scatter_add_(1, column, here.unsqueeze(1).to(type).neg_());
  return result.mul_(mask.unsqueeze(1).to(type) * gradient);
}

}  // namespace

at::Tensor CrossEntropy(const ModuleRank& rank, const at::Tensor& logits, const at::Tensor& labels,
                        const at::Tensor& mask) {
  Softmax softmax{.mask = mask};
  at::Tensor loss;
  {
    const at::NoGradGuard no_grad;
    loss = softmax.Loss(rank, logits.detach(), labels);
  }
  return Differentiable(loss, {logits},
                        [softmax, type = logits.scalar_type()](const at::Tensor& gradient) {
                          return std::vector<at::Tensor>{softmax.Backward(gradient).to(type)};
                        });
}

}  // namespace isthmus::backend
