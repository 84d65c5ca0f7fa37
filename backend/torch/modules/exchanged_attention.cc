#include "backend/torch/modules/context_parallel.h"

namespace isthmus::backend {
namespace {

TokenLayout WholeSequences(TokenLayout layout) {
  layout.cp = 1;
  return layout;
}

QkvWidths Share(const QkvWidths& widths, int cp) {
  return {widths.query / cp, widths.kv / cp, widths.head_dim};
}

class ExchangedCore final : public ContextParallelCore {
 public:
  ExchangedCore(const ModuleRank& rank, const TokenLayout& layout, const QkvWidths& widths)
      : rank_(rank),
        layout_(layout),
        widths_(widths),
        order_(ToTensor(layout.AllPositions(), rank.device)),
        inner_(MakeLocalCore(rank, WholeSequences(layout), Share(widths, layout.cp))) {}

  Output Forward(const at::Tensor& qkv) const override {
    const at::Tensor exchanged = ToHeads(qkv, qkv_widths());
    const Output inner = inner_->Forward(exchanged);
    Output output{ToTokens(inner.out, {widths_.query}), inner.saved};
    // Kept, so that the backward doesn't exchange them once more.
    output.saved.push_back(exchanged);
    output.saved.push_back(inner.out);
    return output;
  }

  at::Tensor Backward(const at::Tensor& /*qkv*/, const Output& output,
                      const at::Tensor& dout) const override {
    const at::Tensor inner_dout = ToHeads(dout, {widths_.query});
    Output inner{output.saved.back(), output.saved};
    inner.saved.pop_back();
    const at::Tensor exchanged = inner.saved.back();
    inner.saved.pop_back();
    return ToTokens(inner_->Backward(exchanged, inner, inner_dout), qkv_widths());
  }

 private:
  std::vector<std::int64_t> qkv_widths() const { return {widths_.query, widths_.kv, widths_.kv}; }

  at::Tensor Exchange(const at::Tensor& sent) const {
    at::Tensor received = at::empty_like(sent);
    rank_.cp->AllToAll(received, sent).Wait();
    return received;
  }

  /// From this rank's tokens of all heads, parts of the given widths side by side, to all tokens,
  /// in the order of sequences, of this rank's share of each part.
  at::Tensor ToHeads(const at::Tensor& x, const std::vector<std::int64_t>& widths) const {
    std::vector<at::Tensor> shares;
    std::int64_t begin = 0;
    for (const std::int64_t width : widths) {
      shares.push_back(x.narrow(1, begin, width).unflatten(1, {layout_.cp, -1}));
      begin += width;
    }
    const at::Tensor received = Exchange(at::cat(shares, 2).transpose(0, 1).contiguous());
    const std::int64_t width = received.size(2);
    const at::Tensor by_rank =
        received.view({layout_.cp, layout_.num_sequences, layout_.local(), width})
            .transpose(0, 1)
            .flatten(1, 2);
    return at::empty_like(by_rank).index_copy_(1, order_, by_rank).view({-1, width});
  }

  /// The way back.
  at::Tensor ToTokens(const at::Tensor& y, const std::vector<std::int64_t>& widths) const {
    const std::int64_t width = y.size(1);
    const at::Tensor by_rank = y.view({layout_.num_sequences, layout_.sequence, width})
                                   .index_select(1, order_)
                                   .unflatten(1, {layout_.cp, layout_.local()})
                                   .transpose(0, 1)
                                   .contiguous();
    const at::Tensor received = Exchange(by_rank.view({layout_.cp, -1, width})).transpose(0, 1);
    std::vector<at::Tensor> parts;
    std::int64_t begin = 0;
    for (const std::int64_t part : widths) {
      parts.push_back(received.narrow(2, begin, part / layout_.cp).flatten(1));
      begin += part / layout_.cp;
    }
    return at::cat(parts, 1);
  }

  const ModuleRank& rank_;
  TokenLayout layout_;
  QkvWidths widths_;
  at::Tensor order_;  // position within its sequence of every token, by rank
  std::unique_ptr<ContextParallelCore> inner_;
};

}  // namespace

std::unique_ptr<ContextParallelCore> MakeExchangedCore(const ModuleRank& rank,
                                                       const TokenLayout& layout,
                                                       const QkvWidths& widths) {
  return std::make_unique<ExchangedCore>(rank, layout, widths);
}

}  // namespace isthmus::backend
