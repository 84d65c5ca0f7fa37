#include "backend/torch/modules/layer.h"

#include <fmt/format.h>

#include "backend/torch/modules/attention.h"
#include "backend/torch/modules/linear.h"
#include "backend/torch/modules/mlp.h"
#include "backend/torch/modules/norm.h"
#include "backend/torch/modules/rotary.h"

namespace isthmus::backend {
namespace {

Parameter& AddQkv(const ModuleRank& rank, ParameterList& list) {
  const plan::Transformer& t = rank.transformer();
  return list.AddCut(*rank.tp, "attention.qkv", 0,
                     {{"attention.q", t.num_heads * t.head_dim, t.hidden},
                      {"attention.k", t.num_kv_heads * t.head_dim, t.hidden},
                      {"attention.v", t.num_kv_heads * t.head_dim, t.hidden}});
}

Parameter& AddFc1(const ModuleRank& rank, ParameterList& list) {
  const plan::Transformer& t = rank.transformer();
  std::vector<ParameterList::Matrix> matrices;
  if (t.gated_mlp) matrices.push_back({"mlp.gate", t.ffn_hidden, t.hidden});
  matrices.push_back({"mlp.up", t.ffn_hidden, t.hidden});
  return list.AddCut(*rank.tp, "mlp.fc1", 0, matrices);
}

ColumnInput InputOf(const ModuleRank& rank) {
  return rank.sequence_parallel ? ColumnInput::kSharded : ColumnInput::kWhole;
}

RowOutput OutputOf(const ModuleRank& rank) {
  return rank.sequence_parallel ? RowOutput::kSharded : RowOutput::kWhole;
}

}  // namespace

Layer::Layer(const ModuleRank& rank, int layer, bool frozen)
    : rank_(rank),
      parameters_(fmt::format("{}.layers.{}.", rank.module->name, layer), frozen),
      norm1_(rank, parameters_, "norm1"),
      qkv_(AddQkv(rank, parameters_)),
      projection_(
          parameters_.AddCut(*rank.tp, "attention.output", 1,
                             {{"attention.output", rank.transformer().hidden,
                               rank.transformer().num_heads * rank.transformer().head_dim}})),
      norm2_(rank, parameters_, "norm2"),
      fc1_(AddFc1(rank, parameters_)),
      fc2_(parameters_.AddCut(
          *rank.tp, "mlp.down", 1,
          {{"mlp.down", rank.transformer().hidden, rank.transformer().ffn_hidden}})) {}

at::Tensor Layer::Forward(const at::Tensor& x, const TokenLayout& layout) {
  const at::Tensor attended = x + Attend(norm1_.Forward(rank_, x), layout);
  return attended + Mlp(norm2_.Forward(rank_, attended));
}

at::Tensor Layer::Attend(const at::Tensor& x, const TokenLayout& layout) {
  const plan::Transformer& t = rank_.transformer();
  const std::int64_t q_and_k = (t.num_heads + t.num_kv_heads) / rank_.tp->size() * t.head_dim;
  at::Tensor qkv = ColumnLinear(rank_, qkv_, x, InputOf(rank_));
  if (t.qk_norm) qkv = HeadNorm(rank_, qkv, q_and_k, t.head_dim);
  if (t.rotary) qkv = Rotate(rank_, layout, qkv, q_and_k);
  return RowLinear(rank_, projection_, Attention(rank_, layout, qkv), OutputOf(rank_));
}

at::Tensor Layer::Mlp(const at::Tensor& x) {
  const at::Tensor wide = ColumnLinear(rank_, fc1_, x, InputOf(rank_));
  const at::Tensor active = rank_.transformer().gated_mlp ? GatedSilu(wide) : Gelu(wide);
  return RowLinear(rank_, fc2_, active, OutputOf(rank_));
}

}  // namespace isthmus::backend
