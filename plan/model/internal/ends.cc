#include <vector>

#include "plan/model/internal/pieces.h"

// What stands before and behind the layers: stem, projector, head.
namespace isthmus::plan::internal {
namespace {

constexpr LinearNames kHead{"head",       "head gather",      "head dgrad", "head dgrad scatter",
                            "head wgrad", "head wgrad gather"};

// Patches enter whole on every rank of the tp group; the GEMM is not split.
Linear PatchEmbedding(const RankShape& rank) {
  Linear linear;
  linear.tokens = rank.tokens;
  linear.in = rank.module->input_width;
  linear.out = rank.hidden;
  return linear;
}

bool has_positions(const RankShape& rank) {
  return !rank.transformer->rotary && (!rank.decoder || rank.transformer->max_positions > 0);
}

void AddEncoderStemForward(const RankShape& rank, SegmentList& list) {
  if (rank.module->input_width == 0) return;
  list.Compute("patch embedding", {ForwardGemm(rank, PatchEmbedding(rank))});
  if (!has_positions(rank)) return;
  list.Compute("positions",
               {Moves(MemoryClass::kElementwise, rank.Widen(6 * rank.tokens * rank.hidden))});
}

Linear HeadLinear(const RankShape& rank) {
  // Head and loss stay in 16 bit in fp8 runs (modelling_runs §1.1); no user buffers around them.
  return {kHead, rank.tokens, rank.hidden, rank.vocabulary, ActivationType(*rank.settings), false};
}

// Traffic of the cross entropy, both ways together, per logit of the rank.
std::int64_t LossTrafficPerLogit(LossKernel loss) {
  return loss == LossKernel::kFused || loss == LossKernel::kInPlace ? 34 : 50;
}

// 65 % of it runs in the forward (modelling_runs §4).
std::int64_t LossBytes(const RankShape& rank, bool backward) {
  const std::int64_t total =
      LossTrafficPerLogit(rank.settings->loss) * rank.tokens * rank.vocabulary;
  const std::int64_t forward = total * 65 / 100;
  return backward ? total - forward : forward;
}

// One linear layer of the projector on this rank; layers are column- and row-parallel by turns.
struct ProjectorLayer {
  Linear linear;
  bool column = true;
  bool last = false;
};

std::vector<ProjectorLayer> ProjectorLayers(const BlockShape& shape, const RankShape& rank) {
  const Projector projector = ProjectorOf(shape);
  const std::int64_t inner = projector.hidden > 0 ? projector.hidden : shape.projector_out;
  std::vector<ProjectorLayer> layers;
  std::int64_t width = shape.projector_in;
  for (int index = 0; index < projector.num_layers; ++index) {
    ProjectorLayer layer;
    layer.last = index + 1 == projector.num_layers;
    layer.column = index % 2 == 0;
    const std::int64_t next = layer.last ? shape.projector_out : inner;
    layer.linear.tokens = ProjectorTokens(shape);
    layer.linear.in = layer.column ? width : CeilDivide(width, rank.tp);
    layer.linear.out = layer.column ? CeilDivide(next, rank.tp) : next;
    layers.push_back(layer);
    width = next;
  }
  return layers;
}

}  // namespace

void AddStemForward(const RankShape& rank, SegmentList& list) {
  if (!rank.decoder) {
    AddEncoderStemForward(rank, list);
    return;
  }
  // 12·T·h over both ways (modelling_runs §4).
  const std::int64_t elements = rank.tokens * rank.hidden;
  list.Compute("embedding", {Moves(MemoryClass::kElementwise, rank.Widen(6 * elements), 3)});
  if (rank.tp == 1) return;
  const CollectiveKind kind =
      rank.sequence_parallel ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
  list.Collective("embedding scatter", OverTp(kind, elements, rank.element_bytes));
}

void AddStemBackward(const RankShape& rank, bool weights, SegmentList& list) {
  const std::int64_t elements = rank.tokens * rank.hidden;
  if (rank.sequence_parallel) {
    list.Collective("embedding gather",
                    OverTp(CollectiveKind::kAllGather, elements, rank.element_bytes));
  }
  if (!weights) return;
  if (rank.decoder) {
    list.Compute("embedding backward",
                 {Moves(MemoryClass::kElementwise, rank.Widen(6 * elements), 3)});
    return;
  }
  if (rank.module->input_width == 0) return;
  // Nobody needs the gradient of pixels.
  list.Compute("patch embedding wgrad", WeightKernels(rank, PatchEmbedding(rank)));
  if (has_positions(rank)) {
    list.Compute("positions backward",
                 {Moves(MemoryClass::kElementwise, rank.Widen(4 * elements))});
  }
}

void AddProjectorForward(const BlockShape& shape, const RankShape& rank, SegmentList& list) {
  const std::int64_t tokens = ProjectorTokens(shape);
  if (rank.encoder_side_projector() && rank.sequence_parallel) {
    list.Collective("projector gather", OverTp(CollectiveKind::kAllGather,
                                               tokens * shape.projector_in, rank.element_bytes));
  }
  for (const ProjectorLayer& layer : ProjectorLayers(shape, rank)) {
    const Linear& linear = layer.linear;
    list.Compute("projector", {ForwardGemm(rank, linear)});
    if (!layer.last) {
      const std::int64_t elements = tokens * linear.out;
      list.Compute("projector activation",
                   {Moves(MemoryClass::kElementwise, rank.Widen(4 * elements))});
    }
    if (rank.tp == 1 || (layer.column && !layer.last)) continue;
    const std::int64_t width = layer.column ? linear.out * rank.tp : linear.out;
    list.Collective(layer.column ? "projector output gather" : "projector all-reduce",
                    OverTp(layer.column ? CollectiveKind::kAllGather : CollectiveKind::kAllReduce,
                           tokens * width, rank.element_bytes));
  }
}

void AddProjectorBackward(const BlockShape& shape, const RankShape& rank, Pass pass,
                          SegmentList& list) {
  const std::vector<ProjectorLayer> layers = ProjectorLayers(shape, rank);
  const bool weights = pass.weight && rank.projector_weights;
  // Upstream of an encoder-side projector are the layers, of an LLM-side one the boundary.
  const bool upstream =
      rank.encoder_side_projector() ? rank.layers_run_backward : shape.needs_input_gradient;
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    const bool first = layer + 1 == layers.rend();
    const bool dgrad = pass.input && (!first || upstream);
    const Linear& linear = layer->linear;
    if (!layer->last && pass.input) {
      list.Compute("projector activation backward",
                   {Moves(MemoryClass::kElementwise, rank.Widen(6 * linear.tokens * linear.out))});
    }
    if (dgrad) list.Compute("projector dgrad", {InputGemm(rank, linear)});
    if (weights) list.Compute("projector wgrad", WeightKernels(rank, linear));
    if (!dgrad || rank.tp == 1 || !layer->column) continue;
    const bool scatter = first && rank.encoder_side_projector() && rank.sequence_parallel;
    list.Collective(scatter ? "projector dgrad scatter" : "projector dgrad all-reduce",
                    OverTp(scatter ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce,
                           linear.tokens * linear.in, rank.element_bytes));
  }
}

void AddHeadForward(const RankShape& rank, SegmentList& list) {
  const std::int64_t elements = rank.sharded_tokens * rank.hidden;
  list.Compute("final norm", {Moves(MemoryClass::kNorm, rank.Widen(4 * elements))});
  AddColumnForward(rank, HeadLinear(rank), list);
  list.Compute("loss", {Moves(MemoryClass::kCrossEntropy, LossBytes(rank, false), 6)});
  if (rank.tp == 1) return;
  // Vocabulary-parallel cross entropy: maximum, target logit and sum of exponentials, fp32 each.
  for (const char* name : {"loss maximum", "loss target", "loss sum"}) {
    list.Collective(name, OverTp(CollectiveKind::kAllReduce, rank.tokens, 4));
  }
}

void AddHeadBackward(const RankShape& rank, Pass pass, SegmentList& list) {
  if (pass.input) {
    list.Compute("loss backward", {Moves(MemoryClass::kCrossEntropy, LossBytes(rank, true), 4)});
  }
  AddColumnBackward(rank, HeadLinear(rank), pass, list);
  if (!pass.input) return;
  const std::int64_t elements = rank.sharded_tokens * rank.hidden;
  list.Compute("final norm backward",
               {Moves(MemoryClass::kNormBackward, rank.Widen(6 * elements))});
}

}  // namespace isthmus::plan::internal
