#include "backend/torch/modules/context_parallel.h"

namespace isthmus::backend {
namespace {

class GatheredCore final : public ContextParallelCore {
 public:
  GatheredCore(const ModuleRank& rank, const TokenLayout& layout, const QkvWidths& widths)
      : rank_(rank),
        layout_(layout),
        widths_(widths),
        visible_(FindVisible(layout, layout.PositionsOf(rank.cp->index()), layout.AllPositions(),
                             rank.device)) {}

  Output Forward(const at::Tensor& qkv) const override {
    const QkvBlocks blocks = Gather(qkv);
    const AttentionOutput output = Attend(blocks.q, blocks.k, blocks.v, visible_.blocked);
    return {output.out.reshape({-1, widths_.query}).to(qkv.scalar_type()), {output.log_sum}};
  }

  at::Tensor Backward(const at::Tensor& qkv, const Output& output,
                      const at::Tensor& dout) const override {
    const QkvBlocks blocks = Gather(qkv);
    const auto heads = [&](const at::Tensor& x) {
      return x.reshape(blocks.q.sizes()).to(rank_.statistics);
    };
    const AttentionOutput whole{heads(output.out), output.saved.front()};
    const AttentionGradients gradients =
        AttendBackward(blocks.q, blocks.k, blocks.v, visible_.blocked, whole, heads(dout));
    const at::Tensor dq = gradients.dq.reshape({-1, widths_.query}).to(qkv.scalar_type());
    return at::cat({dq, Scatter(gradients, qkv)}, 1);
  }

 private:
  /// The rank's queries and the visible keys and values of all ranks.
  QkvBlocks Gather(const at::Tensor& qkv) const {
    const at::Tensor own = qkv.narrow(1, widths_.query, 2 * widths_.kv).contiguous();
    const at::Tensor whole = at::empty({own.size(0) * layout_.cp, own.size(1)}, own.options());
    rank_.cp->AllGather(whole, own).Wait();
    const at::Tensor by_sequence =
        whole.view({layout_.cp, layout_.num_sequences, layout_.local(), own.size(1)})
            .transpose(0, 1)
            .flatten(1, 2)
            .narrow(1, visible_.key_begin, visible_.num_keys)
            .to(rank_.statistics);
    const auto heads = [&](std::int64_t begin) {
      return by_sequence.narrow(2, begin, widths_.kv).unflatten(2, {-1, widths_.head_dim});
    };
    const at::Tensor q =
        qkv.narrow(1, 0, widths_.query)
            .to(rank_.statistics)
            .reshape({layout_.num_sequences, layout_.local(), -1, widths_.head_dim});
    return {q, heads(0), heads(widths_.kv)};
  }

  /// Gradients of the rank's own keys and values, summed over all ranks' queries.
  at::Tensor Scatter(const AttentionGradients& gradients, const at::Tensor& qkv) const {
    const at::Tensor all =
        at::zeros({layout_.num_sequences, layout_.sequence, 2 * widths_.kv}, qkv.options());
    all.narrow(1, visible_.key_begin, visible_.num_keys)
        .copy_(at::cat({gradients.dk.flatten(2), gradients.dv.flatten(2)}, 2));
    const at::Tensor by_rank =
        all.unflatten(1, {layout_.cp, layout_.local()}).transpose(0, 1).contiguous();
    at::Tensor own = at::empty({qkv.size(0), 2 * widths_.kv}, qkv.options());
    rank_.cp->ReduceScatter(own, by_rank.view({-1, 2 * widths_.kv})).Wait();
    return own;
  }

  const ModuleRank& rank_;
  TokenLayout layout_;
  QkvWidths widths_;
  VisiblePart visible_;
};

}  // namespace

std::unique_ptr<ContextParallelCore> MakeGatheredCore(const ModuleRank& rank,
                                                      const TokenLayout& layout,
                                                      const QkvWidths& widths) {
  return std::make_unique<GatheredCore>(rank, layout, widths);
}

}  // namespace isthmus::backend
