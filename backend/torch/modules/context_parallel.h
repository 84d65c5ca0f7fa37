#pragma once

#include <ATen/ATen.h>

#include <memory>

#include "backend/torch/modules/attention_core.h"
#include "backend/torch/modules/module_rank.h"
#include "backend/torch/modules/token_layout.h"

namespace isthmus::backend {

/// Widths of this rank's heads in [tokens, q + 2k].
struct QkvWidths {
  std::int64_t query = 0;
  std::int64_t kv = 0;
  std::int64_t head_dim = 0;
  std::int64_t total() const { return query + 2 * kv; }
};

/// The attention core over the ranks of cp. Nothing is recorded; tensors of tokens are flattened
/// and in the type of activations.
class ContextParallelCore {
 public:
  /// `log_sum` is what the backward needs besides `out`, whose it is.
  struct Output {
    at::Tensor out;  // [tokens, q]
    std::vector<at::Tensor> saved;
  };

  virtual ~ContextParallelCore() = default;
  virtual Output Forward(const at::Tensor& qkv) const = 0;
  /// Gradient of qkv.
  virtual at::Tensor Backward(const at::Tensor& qkv, const Output& output,
                              const at::Tensor& dout) const = 0;
};

/// What `settings.context_parallel` says, or with cp = 1 the rank's own tokens alone. Lifetime:
/// `rank` outlives it.
std::unique_ptr<ContextParallelCore> MakeCore(const ModuleRank& rank, const TokenLayout& layout,
                                              const QkvWidths& widths);

std::unique_ptr<ContextParallelCore> MakeLocalCore(const ModuleRank& rank,
                                                   const TokenLayout& layout,
                                                   const QkvWidths& widths);
/// Keys and values of the group are gathered, in the backward once more; their gradients are summed
/// and scattered.
std::unique_ptr<ContextParallelCore> MakeGatheredCore(const ModuleRank& rank,
                                                      const TokenLayout& layout,
                                                      const QkvWidths& widths);
/// Tokens of all heads are exchanged for all tokens of a share of the heads, and back.
std::unique_ptr<ContextParallelCore> MakeExchangedCore(const ModuleRank& rank,
                                                       const TokenLayout& layout,
                                                       const QkvWidths& widths);
/// Keys and values go round, each rank to the next; in the backward their gradients go with them
/// and take one more step home. Outputs are merged as Ring Attention (Liu et al. 2023) has it.
std::unique_ptr<ContextParallelCore> MakeRingCore(const ModuleRank& rank, const TokenLayout& layout,
                                                  const QkvWidths& widths);

/// The parts of [tokens, q + 2k] as [sequences, tokens of one, heads, d] in the statistics' type.
struct QkvBlocks {
  at::Tensor q, k, v;
};
QkvBlocks SplitQkv(const at::Tensor& qkv, std::int64_t num_sequences, const QkvWidths& widths,
                   at::ScalarType type);
/// Gradients of the three, side by side as qkv is.
at::Tensor JoinQkv(const AttentionGradients& gradients, at::ScalarType type);

}  // namespace isthmus::backend
