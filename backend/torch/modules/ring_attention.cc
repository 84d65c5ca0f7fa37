#include "backend/torch/modules/context_parallel.h"

namespace isthmus::backend {
namespace {

class RingCore final : public ContextParallelCore {
 public:
  RingCore(const ModuleRank& rank, const TokenLayout& layout, const QkvWidths& widths)
      : rank_(rank), layout_(layout), widths_(widths) {
    const std::vector<std::int64_t> own = layout.PositionsOf(rank.cp->index());
    for (int step = 0; step < layout.cp; ++step) {
      visible_.push_back(FindVisible(layout, own, layout.PositionsOf(SourceOf(step)), rank.device));
    }
  }

  Output Forward(const at::Tensor& qkv) const override {
    const at::Tensor q = Queries(qkv);
    at::Tensor block = OwnBlock(qkv);
    // Every query sees a key of the rank's own block: itself.
    AttentionOutput sum;
    for (int step = 0; step < layout_.cp; ++step) {
      at::Tensor next;
      std::vector<Pending> exchange;
      if (step + 1 < layout_.cp) exchange = Pass(block, next);
      const VisiblePart& part = visible_[static_cast<std::size_t>(step)];
      if (part.num_queries > 0) {
        const AttentionOutput output =
            Attend(SeenBy(q, part), Keys(block, part), Values(block, part), part.blocked);
        if (step == 0) {
          sum = output;
        } else {
          Merge(sum, output, part.query_begin);
        }
      }
      for (Pending& pending : exchange) pending.Wait();
      block = next;
    }
    return {sum.out.reshape({-1, widths_.query}).to(qkv.scalar_type()), {sum.log_sum}};
  }

  at::Tensor Backward(const at::Tensor& qkv, const Output& output,
                      const at::Tensor& dout) const override {
    const at::Tensor q = Queries(qkv);
    const auto heads = [&](const at::Tensor& x) {
      return x.reshape(q.sizes()).to(rank_.statistics);
    };
    const AttentionOutput whole{heads(output.out), output.saved.front()};
    const at::Tensor outer = heads(dout);
    at::Tensor dq = at::zeros_like(q);
    const std::int64_t width = 2 * widths_.kv;
    // Keys and values of one rank, and what has come together of their gradients.
    at::Tensor block = at::zeros({qkv.size(0), 2 * width}, qkv.options());
    block.narrow(1, 0, width).copy_(OwnBlock(qkv));
    for (int step = 0; step < layout_.cp; ++step) {
      AddGradients(visible_[static_cast<std::size_t>(step)], q, whole, outer, block, dq);
      if (step + 1 < layout_.cp) block = PassAndWait(block);
    }
    const at::Tensor home = PassAndWait(block.narrow(1, width, width).contiguous());
    return at::cat({dq.reshape({-1, widths_.query}).to(qkv.scalar_type()), home}, 1);
  }

 private:
  /// Whose block is here at a step.
  int SourceOf(int step) const { return (rank_.cp->index() - step + layout_.cp) % layout_.cp; }

  at::Tensor Queries(const at::Tensor& qkv) const {
    return InSequences(qkv.narrow(1, 0, widths_.query));
  }
  at::Tensor OwnBlock(const at::Tensor& qkv) const {
    return qkv.narrow(1, widths_.query, 2 * widths_.kv).contiguous();
  }
  at::Tensor InSequences(const at::Tensor& x) const {
    return x.to(rank_.statistics)
        .reshape({layout_.num_sequences, layout_.local(), -1, widths_.head_dim});
  }
  static at::Tensor SeenBy(const at::Tensor& q, const VisiblePart& part) {
    return q.narrow(1, part.query_begin, part.num_queries);
  }
  at::Tensor Columns(const at::Tensor& block, std::int64_t begin, const VisiblePart& part) const {
    return InSequences(block.narrow(1, begin, widths_.kv)).narrow(1, part.key_begin, part.num_keys);
  }
  at::Tensor Keys(const at::Tensor& block, const VisiblePart& part) const {
    return Columns(block, 0, part);
  }
  at::Tensor Values(const at::Tensor& block, const VisiblePart& part) const {
    return Columns(block, widths_.kv, part);
  }

  /// Starts to pass a block to the next rank and to take the previous one's.
  std::vector<Pending> Pass(const at::Tensor& block, at::Tensor& taken) const {
    const int cp = layout_.cp;
    const int self = rank_.cp->index();
    taken = at::empty_like(block);
    return rank_.cp->Exchange({{.tensor = taken, .peer = (self + cp - 1) % cp, .sends = false},
                               {.tensor = block, .peer = (self + 1) % cp, .sends = true}});
  }
  at::Tensor PassAndWait(const at::Tensor& block) const {
    at::Tensor taken;
    for (Pending& pending : Pass(block, taken)) pending.Wait();
    return taken;
  }

  /// Adds the gradients of what the rank's queries see of the block.
  void AddGradients(const VisiblePart& part, const at::Tensor& q, const AttentionOutput& whole,
                    const at::Tensor& dout, const at::Tensor& block, const at::Tensor& dq) const {
    if (part.num_queries == 0) return;
    const AttentionOutput seen{SeenBy(whole.out, part),
                               whole.log_sum.narrow(2, part.query_begin, part.num_queries)};
    const AttentionGradients gradients =
        AttendBackward(SeenBy(q, part), Keys(block, part), Values(block, part), part.blocked, seen,
                       SeenBy(dout, part));
    SeenBy(dq, part).add_(gradients.dq);
    const auto add = [&](std::int64_t begin, const at::Tensor& gradient) {
      block.narrow(1, begin, widths_.kv)
          .unflatten(0, {layout_.num_sequences, layout_.local()})
          .narrow(1, part.key_begin, part.num_keys)
          .add_(gradient.flatten(2));
    };
    add(2 * widths_.kv, gradients.dk);
    add(3 * widths_.kv, gradients.dv);
  }

  const ModuleRank& rank_;
  TokenLayout layout_;
  QkvWidths widths_;
  std::vector<VisiblePart> visible_;  // by step
};

}  // namespace

std::unique_ptr<ContextParallelCore> MakeRingCore(const ModuleRank& rank, const TokenLayout& layout,
                                                  const QkvWidths& widths) {
  return std::make_unique<RingCore>(rank, layout, widths);
}

}  // namespace isthmus::backend
