#include "backend/torch/modules/chunk.h"

#include <algorithm>

#include "backend/torch/modules/differentiable.h"
#include "backend/torch/modules/head.h"
#include "backend/torch/modules/layer.h"
#include "backend/torch/modules/patch_embedding.h"
#include "backend/torch/modules/projector.h"
#include "backend/torch/modules/token_embedding.h"
#include "backend/torch/modules/token_shards.h"
#include "base/check.h"

namespace isthmus::backend {
namespace {

/// Width of an encoder's tokens at the LLM: pixel shuffle widens as it thins them out.
std::int64_t ShuffledWidth(const plan::Module& encoder) {
  return encoder.transformer.hidden * encoder.tokens_per_sample /
         std::max<std::int64_t>(encoder.llm_tokens_per_sample, 1);
}

class TorchChunk final : public Chunk {
 public:
  TorchChunk(const plan::Program& program, const ChunkOptions& options,
             Communicators& communicators);
  // Its layers refer to rank_.
  TorchChunk(const TorchChunk&) = delete;
  TorchChunk& operator=(const TorchChunk&) = delete;

  std::vector<Parameter*> ParametersOf(std::size_t bucket) override;
  std::vector<Parameter*> FrozenParameters() override;
  at::Tensor Forward(const plan::BlockSpan& part, const PartInputs& inputs) override;
  void Defer(DeferredWork* deferred) override { rank_.deferred = deferred; }

 private:
  void AddProjector(const plan::Program& program, std::uint16_t module);
  std::vector<ParameterList*> ListsOf(const plan::Block& block, int first_layer);
  bool is_end(const plan::BlockSpan& part) const;
  TokenLayout LayoutOf(const plan::BlockSpan& part, const PartInputs& inputs) const;
  at::Tensor Empty(const plan::BlockSpan& part, const PartInputs& inputs) const;
  at::Tensor EnterEncoder(const plan::BlockSpan& part, const PartInputs& inputs,
                          const TokenLayout& layout);
  at::Tensor LeaveEncoder(const plan::BlockSpan& part, const at::Tensor& hidden);
  at::Tensor EnterDecoder(const plan::BlockSpan& part, const PartInputs& inputs,
                          const TokenLayout& layout);

  ModuleRank rank_;
  const plan::StageContents& contents_;
  bool last_stage_ = false;
  std::size_t projected_edge_ = 0;  // among the decoder's incoming edges
  std::int64_t output_width_ = 0;   // of an encoder's last stage
  std::unique_ptr<TokenProjector> projector_;
  std::unique_ptr<TokenEmbedding> embedding_;
  std::unique_ptr<PatchEmbedding> patches_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::unique_ptr<Head> head_;
};

TorchChunk::TorchChunk(const plan::Program& program, const ChunkOptions& options,
                       Communicators& communicators)
    : rank_(DescribeModuleRank(program, options, communicators)),
      contents_(program.modules[options.module]
                    .contents[static_cast<std::size_t>(options.virtual_stage)]) {
  const plan::PlacedModule& placed = program.modules[options.module];
  const plan::Block& block = contents_.block;
  const bool frozen = placed.module.settings.frozen;
  last_stage_ = static_cast<std::size_t>(options.virtual_stage) + 1 == placed.contents.size();
  output_width_ = ShuffledWidth(placed.module);
  if (block.projector) AddProjector(program, options.module);
  if (block.stem && rank_.is_decoder()) {
    embedding_ = std::make_unique<TokenEmbedding>(rank_, frozen);
  } else if (block.stem) {
    patches_ = std::make_unique<PatchEmbedding>(rank_, frozen);
  }
  for (int layer = 0; layer < block.num_layers; ++layer) {
    layers_.push_back(std::make_unique<Layer>(rank_, contents_.first_layer + layer, frozen));
  }
  if (!block.head) return;
  const bool tied = rank_.transformer().tied_embeddings && embedding_;
  head_ = std::make_unique<Head>(rank_, frozen, tied ? &embedding_->table() : nullptr);
}

void TorchChunk::AddProjector(const plan::Program& program, std::uint16_t module) {
  const bool encoder_side = !rank_.is_decoder();
  std::size_t incoming = 0;
  for (const plan::Edge& edge : program.edges) {
    const plan::Module& encoder = program.modules[static_cast<std::size_t>(edge.from)].module;
    const plan::Module& decoder = program.modules[static_cast<std::size_t>(edge.to)].module;
    const bool with_llm =
        encoder.projector && encoder.projector->place == plan::Projector::Place::kWithLlm;
    if (encoder_side ? edge.from == module : edge.to == module && with_llm) {
      projected_edge_ = incoming;
      output_width_ = decoder.transformer.hidden;
      projector_ = std::make_unique<TokenProjector>(rank_, encoder, ShuffledWidth(encoder),
                                                    output_width_, encoder_side);
    }
    if (edge.to == module) ++incoming;
  }
  ISTHMUS_CHECK(projector_, "{} has a projector on no edge", rank_.module->name);
}

std::vector<ParameterList*> TorchChunk::ListsOf(const plan::Block& block, int first_layer) {
  std::vector<ParameterList*> lists;
  const auto add_projector = [&] {
    if (block.projector) lists.push_back(&projector_->parameters());
  };
  if (rank_.is_decoder()) add_projector();
  if (block.stem) lists.push_back(embedding_ ? &embedding_->parameters() : &patches_->parameters());
  for (int layer = 0; layer < block.num_layers; ++layer) {
    const auto index = static_cast<std::size_t>(first_layer + layer - contents_.first_layer);
    lists.push_back(&layers_[index]->parameters());
  }
  if (!rank_.is_decoder()) add_projector();
  if (block.head) lists.push_back(&head_->parameters());
  return lists;
}

std::vector<Parameter*> TorchChunk::ParametersOf(std::size_t bucket) {
  const plan::Bucket& described = contents_.buckets[bucket];
  std::vector<Parameter*> parameters;
  for (ParameterList* list : ListsOf(described.block, described.first_layer)) {
    for (const auto& parameter : list->parameters()) parameters.push_back(parameter.get());
  }
  return parameters;
}

std::vector<Parameter*> TorchChunk::FrozenParameters() {
  std::vector<Parameter*> parameters;
  for (ParameterList* list : ListsOf(contents_.block, contents_.first_layer)) {
    if (!list->frozen()) continue;
    for (const auto& parameter : list->parameters()) parameters.push_back(parameter.get());
  }
  return parameters;
}

bool TorchChunk::is_end(const plan::BlockSpan& part) const {
  return last_stage_ && part.first_layer + part.block.num_layers ==
                            contents_.first_layer + contents_.block.num_layers;
}

TokenLayout TorchChunk::LayoutOf(const plan::BlockSpan& part, const PartInputs& inputs) const {
  TokenLayout layout{.cp = rank_.cp->size(), .causal = rank_.is_decoder()};
  const std::int64_t span = rank_.module->span_tokens;
  std::int64_t rows = 0;
  if (inputs.hidden.defined()) {
    rows = inputs.hidden.size(0) * (rank_.sequence_parallel ? rank_.tp->size() : 1);
  }
  if (!rank_.is_decoder()) {
    if (part.block.stem) rows = inputs.data->patches.size(0);
    layout.num_sequences = 1;
    layout.sequence = rows * layout.cp;
    layout.span = span > 0 ? span : layout.sequence;
    return layout;
  }
  layout.sequence = rank_.sequence_length;
  layout.span = span > 0 ? span : layout.sequence;
  layout.num_sequences = part.block.stem ? inputs.data->tokens.size(0) : rows / layout.local();
  return layout;
}

at::Tensor TorchChunk::Empty(const plan::BlockSpan& part, const PartInputs& inputs) const {
  const bool leaves = part.block.projector || is_end(part);
  const std::int64_t width = leaves ? output_width_ : rank_.transformer().hidden;
  const at::Tensor input =
      part.block.projector && rank_.is_decoder() ? inputs.boundary[projected_edge_] : inputs.hidden;
  at::Tensor output = at::empty({0, width}, at::dtype(rank_.dtype).device(rank_.device));
  return Differentiable(output, {input, rank_.anchor}, [input](const at::Tensor&) {
    at::Tensor gradient;
    if (input.defined()) gradient = at::zeros_like(input);
    return std::vector<at::Tensor>{gradient, at::Tensor()};
  });
}

at::Tensor TorchChunk::EnterEncoder(const plan::BlockSpan& part, const PartInputs& inputs,
                                    const TokenLayout& layout) {
  return part.block.stem ? patches_->Forward(inputs.data->patches, layout) : inputs.hidden;
}

at::Tensor TorchChunk::LeaveEncoder(const plan::BlockSpan& part, const at::Tensor& hidden) {
  if (part.block.projector) return projector_->Forward(hidden);
  if (!is_end(part) || projector_) return hidden;
  const at::Tensor whole = GatherForWhole(rank_, hidden);
  return whole.size(1) == output_width_ ? whole : whole.reshape({-1, output_width_});
}

at::Tensor TorchChunk::EnterDecoder(const plan::BlockSpan& part, const PartInputs& inputs,
                                    const TokenLayout& layout) {
  at::Tensor hidden = inputs.hidden;
  if (part.block.projector && inputs.boundary[projected_edge_].defined()) {
    const at::Tensor& arrived = inputs.boundary[projected_edge_];
    hidden =
        arrived.size(0) == 0 ? Empty(part, inputs) : projector_->Forward(arrived.to(rank_.dtype));
  }
  if (!part.block.stem) return hidden;
  std::vector<at::Tensor> boundary = inputs.boundary;
  if (projector_) {
    boundary.resize(std::max(boundary.size(), projected_edge_ + 1));
    boundary[projected_edge_] = hidden;
  }
  return embedding_->Forward(*inputs.data, boundary, layout);
}

at::Tensor TorchChunk::Forward(const plan::BlockSpan& part, const PartInputs& inputs) {
  const TokenLayout layout = LayoutOf(part, inputs);
  const bool decoder = rank_.is_decoder();
  if (!decoder && layout.sequence == 0) return Empty(part, inputs);
  at::Tensor hidden =
      decoder ? EnterDecoder(part, inputs, layout) : EnterEncoder(part, inputs, layout);
  for (int layer = 0; layer < part.block.num_layers; ++layer) {
    const auto index = static_cast<std::size_t>(part.first_layer + layer - contents_.first_layer);
    hidden = layers_[index]->Forward(hidden, layout);
  }
  if (!decoder) return LeaveEncoder(part, hidden);
  return part.block.head ? head_->Forward(hidden, *inputs.data, layout) : hidden;
}

}  // namespace

std::unique_ptr<Chunk> MakeChunk(const plan::Program& program, const ChunkOptions& options,
                                 Communicators& communicators) {
  return std::make_unique<TorchChunk>(program, options, communicators);
}

}  // namespace isthmus::backend
