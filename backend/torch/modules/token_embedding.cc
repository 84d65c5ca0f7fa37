#include "backend/torch/modules/token_embedding.h"

#include "backend/torch/modules/differentiable.h"
#include "backend/torch/modules/token_shards.h"
#include "base/check.h"
#include "plan/model/layers.h"

namespace isthmus::backend {
namespace {

/// Tokens whose embedding is a row of a boundary tensor.
struct Inserted {
  at::Tensor targets;  // index among this rank's tokens over cp
  at::Tensor rows;     // of the boundary tensor
};

at::Tensor OnRank(const ModuleRank& rank, const at::Tensor& whole, const at::Tensor& positions) {
  return whole.to(rank.device).index_select(1, positions).flatten();
}

/// Rows belong to the placeholders in their order: those of a sample behind those of the samples in
/// front of it.
Inserted Find(const ModuleRank& rank, const at::Tensor& placeholder, const at::Tensor& positions,
              const at::Tensor& boundary) {
  const std::int64_t rows = boundary.defined() ? boundary.size(0) : 0;
  const auto found = placeholder.sum().item<std::int64_t>();
  ISTHMUS_CHECK(found == rows, "{} placeholders for {} rows", found, rows);
  const at::Tensor targets = OnRank(rank, placeholder, positions).nonzero().flatten();
  const at::Tensor numbers =
      placeholder.flatten().cumsum(0, at::kLong).sub_(1).view(placeholder.sizes());
  return {targets, OnRank(rank, numbers, positions).index_select(0, targets)};
}

}  // namespace

struct TokenEmbedding::Tokens {
  at::Tensor rows;       // of the local table
  at::Tensor here;       // [tokens, 1]: which of them are in this rank's part of the table
  at::Tensor positions;  // within their sequence
  std::vector<Inserted> inserted;
};

std::int64_t PaddedVocabularyOf(const ModuleRank& rank) {
  return plan::PaddedVocabulary(rank.transformer().vocab_size, rank.tp->size(),
                                rank.module->settings.framework->memory->vocabulary_multiple);
}

TokenEmbedding::TokenEmbedding(const ModuleRank& rank, bool frozen)
    : rank_(rank),
      parameters_(rank.module->name + ".", frozen),
      table_(parameters_.AddTable(*rank.tp, "embedding", rank.transformer().vocab_size,
                                  PaddedVocabularyOf(rank), rank.transformer().hidden)) {
  const plan::Transformer& t = rank.transformer();
  if (t.rotary || t.max_positions == 0) return;
  positions_ = &parameters_.AddReplicated("positions", {t.max_positions, t.hidden}, false);
}

TokenEmbedding::Tokens TokenEmbedding::Locate(const BlockData& data,
                                              const std::vector<at::Tensor>& boundary,
                                              const TokenLayout& layout) const {
  const at::Tensor positions = ToTensor(layout.PositionsOf(rank_.cp->index()), rank_.device);
  const at::Tensor ids = OnRank(rank_, data.tokens, positions);
  const std::int64_t rows = table_.shape.front();
  Tokens tokens;
  tokens.rows = ids - rank_.tp->index() * rows;
  at::Tensor here = tokens.rows.ge(0).logical_and(tokens.rows.lt(rows));
  for (std::size_t edge = 0; edge < data.placeholders.size(); ++edge) {
    const at::Tensor& from = edge < boundary.size() ? boundary[edge] : at::Tensor();
    tokens.inserted.push_back(Find(rank_, data.placeholders[edge], positions, from));
    here.index_fill_(0, tokens.inserted.back().targets, false);
  }
  tokens.rows.clamp_(0, rows - 1);
  tokens.here = here.unsqueeze(1);
  tokens.positions = positions.repeat({layout.num_sequences});
  return tokens;
}

at::Tensor TokenEmbedding::Embed(const Tokens& tokens,
                                 const std::vector<at::Tensor>& boundary) const {
  const at::NoGradGuard no_grad;
  at::Tensor partial =
      table_.weight.index_select(0, tokens.rows).masked_fill_(tokens.here.logical_not(), 0.0);
  at::Tensor own = partial;
  if (rank_.sequence_parallel) {
    own = at::empty_like(OwnTokens(rank_, partial));
    rank_.tp->ReduceScatter(own, partial).Wait();
  } else {
    rank_.tp->AllReduce(own).Wait();
  }
  const std::int64_t first = rank_.sequence_parallel ? rank_.tp->index() * own.size(0) : 0;
  for (std::size_t edge = 0; edge < tokens.inserted.size(); ++edge) {
    const auto& [targets, rows] = tokens.inserted[edge];
    const at::Tensor shifted = targets - first;
    const at::Tensor mine = shifted.ge(0).logical_and(shifted.lt(own.size(0))).nonzero().flatten();
    if (mine.size(0) == 0) continue;
    own.index_copy_(0, shifted.index_select(0, mine),
                    boundary[edge].index_select(0, rows.index_select(0, mine)).to(rank_.dtype));
  }
  if (positions_ != nullptr) {
    own.add_(positions_->weight.index_select(0, OwnTokens(rank_, tokens.positions)));
  }
  return own;
}

std::vector<at::Tensor> TokenEmbedding::Backward(const Tokens& tokens,
                                                 const std::vector<at::Tensor>& boundary,
                                                 const at::Tensor& gradient) const {
  const at::Tensor whole = AllTokens(rank_, gradient);
  if (!table_.frozen) {
    const at::ScalarType type = table_.main_gradient.scalar_type();
    table_.main_gradient.index_add_(0, tokens.rows,
                                    whole.to(type).masked_fill(tokens.here.logical_not(), 0.0));
    if (positions_ != nullptr) {
      positions_->main_gradient.index_add_(0, tokens.positions, whole.to(type));
    }
  }
  std::vector<at::Tensor> gradients{at::Tensor()};
  for (std::size_t edge = 0; edge < boundary.size(); ++edge) {
    at::Tensor& back = gradients.emplace_back();
    if (!boundary[edge].defined()) continue;
    back = at::zeros(boundary[edge].sizes(), whole.options());
    if (edge < tokens.inserted.size()) {
      const auto& [targets, rows] = tokens.inserted[edge];
      back.index_copy_(0, rows, whole.index_select(0, targets));
    }
    back = back.to(boundary[edge].scalar_type());
  }
  return gradients;
}

at::Tensor TokenEmbedding::Forward(const BlockData& data, const std::vector<at::Tensor>& boundary,
                                   const TokenLayout& layout) {
  std::vector<at::Tensor> detached;
  for (const at::Tensor& tensor : boundary) {
    detached.push_back(tensor.defined() ? tensor.detach() : tensor);
  }
  const Tokens tokens = Locate(data, detached, layout);
  std::vector<at::Tensor> inputs{rank_.AnchorOf(table_)};
  inputs.insert(inputs.end(), boundary.begin(), boundary.end());
  return Differentiable(Embed(tokens, detached), inputs,
                        [this, tokens, detached](const at::Tensor& gradient) {
                          return Backward(tokens, detached, gradient);
                        });
}

}  // namespace isthmus::backend
