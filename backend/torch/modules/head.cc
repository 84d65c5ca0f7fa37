#include "backend/torch/modules/head.h"

#include "backend/torch/modules/linear.h"
#include "backend/torch/modules/loss.h"
#include "backend/torch/modules/token_embedding.h"

namespace isthmus::backend {
namespace {

Parameter& AddTable(const ModuleRank& rank, ParameterList& list) {
  const plan::Transformer& t = rank.transformer();
  const char* name = t.tied_embeddings ? "embedding" : "head";
  Parameter& table =
      list.AddTable(*rank.tp, name, t.vocab_size, PaddedVocabularyOf(rank), t.hidden);
  table.tied_copy = t.tied_embeddings;
  return table;
}

}  // namespace

Head::Head(const ModuleRank& rank, bool frozen, Parameter* table)
    : rank_(rank),
      parameters_(rank.module->name + ".", frozen),
      norm_(rank, parameters_, "final_norm"),
      weight_(table != nullptr ? *table : AddTable(rank, parameters_)) {}

at::Tensor Head::Forward(const at::Tensor& x, const BlockData& data, const TokenLayout& layout) {
  const at::Tensor positions = ToTensor(layout.PositionsOf(rank_.cp->index()), rank_.device);
  const auto own = [&](const at::Tensor& whole) {
    return whole.to(rank_.device).index_select(1, positions).flatten();
  };
  const ColumnInput input = rank_.sequence_parallel ? ColumnInput::kSharded : ColumnInput::kWhole;
  const at::Tensor logits = ColumnLinear(rank_, weight_, norm_.Forward(rank_, x), input);
  return CrossEntropy(rank_, logits, own(data.labels), own(data.loss_mask));
}

}  // namespace isthmus::backend
