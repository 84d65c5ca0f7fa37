#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "backend/torch/modules/module_rank.h"
#include "backend/torch/modules/parameter_list.h"
#include "backend/torch/modules/token_layout.h"

namespace isthmus::backend {

/// The stem of a decoder: vocabulary-parallel token embedding, rows of boundary tensors in the
/// place of placeholders, and learned positions where the model has them.
///
/// Partial embeddings are summed over tp (scattered under sequence parallelism). The backward
/// gathers the gradient, so that a boundary tensor's is equal on all ranks of tp; over cp it is the
/// part of the rank's own positions, zero elsewhere. Lifetime: as Layer's.
class TokenEmbedding {
 public:
  TokenEmbedding(const ModuleRank& rank, bool frozen);

  /// `boundary`: by incoming edge, of the decoder's width.
  at::Tensor Forward(const BlockData& data, const std::vector<at::Tensor>& boundary,
                     const TokenLayout& layout);
  ParameterList& parameters() { return parameters_; }
  /// The table, for a tied head on this stage.
  Parameter& table() { return table_; }

 private:
  struct Tokens;
  Tokens Locate(const BlockData& data, const std::vector<at::Tensor>& boundary,
                const TokenLayout& layout) const;
  at::Tensor Embed(const Tokens& tokens, const std::vector<at::Tensor>& boundary) const;
  std::vector<at::Tensor> Backward(const Tokens& tokens, const std::vector<at::Tensor>& boundary,
                                   const at::Tensor& gradient) const;

  const ModuleRank& rank_;
  ParameterList parameters_;
  Parameter& table_;
  Parameter* positions_ = nullptr;
};

/// Rows of the padded vocabulary.
std::int64_t PaddedVocabularyOf(const ModuleRank& rank);

}  // namespace isthmus::backend
