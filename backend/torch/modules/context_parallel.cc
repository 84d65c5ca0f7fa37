#include "backend/torch/modules/context_parallel.h"

namespace isthmus::backend {
namespace {

/// Spans of one length that lie one after the other in the flattened tokens.
struct SpanRun {
  std::int64_t begin = 0;
  std::int64_t count = 0;
  std::int64_t length = 0;
};

std::vector<SpanRun> SpanRuns(const TokenLayout& layout) {
  const std::int64_t rest = layout.sequence % layout.span;
  const std::int64_t whole = layout.sequence / layout.span;
  if (rest == 0) return {{0, layout.num_sequences * whole, layout.span}};
  std::vector<SpanRun> runs;
  for (std::int64_t sequence = 0; sequence < layout.num_sequences; ++sequence) {
    const std::int64_t begin = sequence * layout.sequence;
    if (whole > 0) runs.push_back({begin, whole, layout.span});
    runs.push_back({begin + whole * layout.span, 1, rest});
  }
  return runs;
}

/// All tokens are here: every span by itself.
class LocalCore final : public ContextParallelCore {
 public:
  LocalCore(const ModuleRank& rank, const TokenLayout& layout, const QkvWidths& widths)
      : type_(rank.statistics), widths_(widths), runs_(SpanRuns(layout)) {
    for (const SpanRun& run : runs_) {
      at::Tensor blocked;
      if (layout.causal) {
        blocked =
            at::ones({run.length, run.length}, at::dtype(at::kBool).device(rank.device)).triu(1);
      }
      blocked_.push_back(blocked);
    }
  }

  Output Forward(const at::Tensor& qkv) const override {
    Output output;
    output.out = at::empty({qkv.size(0), widths_.query}, qkv.options());
    for (std::size_t index = 0; index < runs_.size(); ++index) {
      const auto [q, k, v] = Blocks(qkv, runs_[index]);
      const AttentionOutput part = Attend(q, k, v, blocked_[index]);
      Part(output.out, runs_[index]).copy_(part.out.reshape({-1, widths_.query}));
      output.saved.push_back(part.log_sum);
    }
    return output;
  }

  at::Tensor Backward(const at::Tensor& qkv, const Output& output,
                      const at::Tensor& dout) const override {
    at::Tensor dqkv = at::empty_like(qkv);
    for (std::size_t index = 0; index < runs_.size(); ++index) {
      const SpanRun& run = runs_[index];
      const auto [q, k, v] = Blocks(qkv, run);
      const auto heads = [&](const at::Tensor& x) {
        return Part(x, run).reshape(q.sizes()).to(type_);
      };
      const AttentionOutput whole{heads(output.out), output.saved[index]};
      const AttentionGradients gradients =
          AttendBackward(q, k, v, blocked_[index], whole, heads(dout));
      Part(dqkv, run).copy_(JoinQkv(gradients, qkv.scalar_type()));
    }
    return dqkv;
  }

 private:
  static at::Tensor Part(const at::Tensor& tokens, const SpanRun& run) {
    return tokens.narrow(0, run.begin, run.count * run.length);
  }
  QkvBlocks Blocks(const at::Tensor& qkv, const SpanRun& run) const {
    return SplitQkv(Part(qkv, run), run.count, widths_, type_);
  }

  at::ScalarType type_;
  QkvWidths widths_;
  std::vector<SpanRun> runs_;
  std::vector<at::Tensor> blocked_;
};

}  // namespace

QkvBlocks SplitQkv(const at::Tensor& qkv, std::int64_t num_sequences, const QkvWidths& widths,
                   at::ScalarType type) {
  const auto heads = [&](std::int64_t begin, std::int64_t width) {
    return qkv.narrow(1, begin, width)
        .to(type)
        .reshape({num_sequences, qkv.size(0) / num_sequences, -1, widths.head_dim});
  };
  return {heads(0, widths.query), heads(widths.query, widths.kv),
          heads(widths.query + widths.kv, widths.kv)};
}

at::Tensor JoinQkv(const AttentionGradients& gradients, at::ScalarType type) {
  const auto flat = [](const at::Tensor& x) { return x.flatten(2).flatten(0, 1); };
  return at::cat({flat(gradients.dq), flat(gradients.dk), flat(gradients.dv)}, 1).to(type);
}

std::unique_ptr<ContextParallelCore> MakeLocalCore(const ModuleRank& rank,
                                                   const TokenLayout& layout,
                                                   const QkvWidths& widths) {
  return std::make_unique<LocalCore>(rank, layout, widths);
}

std::unique_ptr<ContextParallelCore> MakeCore(const ModuleRank& rank, const TokenLayout& layout,
                                              const QkvWidths& widths) {
  if (layout.cp == 1) return MakeLocalCore(rank, layout, widths);
  switch (rank.module->settings.context_parallel) {
    case plan::ContextParallel::kAllGather:
      return MakeGatheredCore(rank, layout, widths);
    case plan::ContextParallel::kAllToAll:
      return MakeExchangedCore(rank, layout, widths);
    case plan::ContextParallel::kRing:
      break;
  }
  return MakeRingCore(rank, layout, widths);
}

}  // namespace isthmus::backend
