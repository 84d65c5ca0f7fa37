#include "backend/torch/modules/chunk.h"

#include <torch/csrc/autograd/autograd.h>

#include <gtest/gtest.h>

#include "tests/unit/backend_torch/chunk_run.h"
#include "tests/unit/backend_torch/reference_model.h"
#include "tests/unit/backend_torch/small_data.h"
#include "tests/unit/backend_torch/small_models.h"

namespace isthmus::tests {
namespace {

NamedTensors Leaves(const NamedTensors& weights) {
  NamedTensors leaves;
  for (const auto& [name, weight] : weights) {
    leaves[name] = weight.clone().set_requires_grad(true);
  }
  return leaves;
}

void ExpectClose(const at::Tensor& found, const at::Tensor& expected, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(found.sizes(), expected.sizes()) << what;
  const double scale = std::max(expected.abs().max().item<double>(), 1e-30);
  const double error = (found - expected).abs().max().item<double>() / scale;
  EXPECT_LT(error, tolerance) << what;
}

void ExpectGradients(const ChunkResult& result, const NamedTensors& leaves, double tolerance) {
  ASSERT_EQ(result.gradients.size(), leaves.size());
  for (const auto& [name, leaf] : leaves) {
    ExpectClose(result.gradients.at(name), leaf.grad(), tolerance, name);
  }
}

struct DecoderCase {
  plan::Module module;
  bool inserts = true;
  bool defers = false;
};

void ExpectDecoderEqualsReference(const DecoderCase& decoder, double tolerance = 1e-10) {
  const plan::Program program = plan::Build(TinyJob({decoder.module}));
  ChunkRequest request{.data = [](base::Rank) { return DecoderData(); }, .defers = decoder.defers};
  const at::Tensor boundary = Values({3, 32}, 0.9);
  request.boundary = {boundary};
  const ChunkResult result = RunChunk(program, request);

  const NamedTensors leaves = Leaves(result.weights);
  const at::Tensor rows = boundary.clone().set_requires_grad(true);
  const at::Tensor loss = ReferenceDecoder(decoder.module, leaves, DecoderData(), rows);
  torch::autograd::backward({loss}, {});
  // Ranks of tp have the same loss, ranks of cp the one of their own tokens.
  const plan::Grid& grid = program.modules[0].grid;
  double sum = 0.0;
  at::Tensor rows_gradient = at::zeros_like(rows);
  for (const base::Rank rank : grid.Ranks()) {
    if (grid.Coordinate(rank, plan::Axis::kTp) > 0) continue;
    sum += result.outputs[rank.index()].item<double>();
    rows_gradient.add_(result.boundary_gradients[rank.index()][0]);
  }
  EXPECT_NEAR(sum / loss.item<double>(), 1.0, tolerance);
  ExpectClose(rows_gradient, rows.grad(), tolerance, "boundary");
  for (const base::Rank rank : grid.Ranks()) {
    const base::Rank first = grid.Group(rank, plan::kTp).front();
    EXPECT_TRUE(at::equal(result.boundary_gradients[rank.index()][0],
                          result.boundary_gradients[first.index()][0]));
  }
  ExpectGradients(result, leaves, tolerance);
}

TEST(Chunk, LlamaEqualsTheReferenceOnOneRank) { ExpectDecoderEqualsReference({TinyLlama({})}); }

TEST(Chunk, GptEqualsTheReferenceOnOneRank) { ExpectDecoderEqualsReference({TinyGpt({})}); }

TEST(Chunk, LlamaEqualsTheReferenceOverTpWithSequenceParallelism) {
  ExpectDecoderEqualsReference({TinyLlama({.tp = 2})});
}

TEST(Chunk, GptEqualsTheReferenceOverTpWithSequenceParallelism) {
  ExpectDecoderEqualsReference({TinyGpt({.tp = 2})});
}

TEST(Chunk, GptEqualsTheReferenceOverTpWithWholeTokens) {
  plan::Module gpt = TinyGpt({.tp = 2});
  gpt.settings.sequence_parallel = false;
  ExpectDecoderEqualsReference({gpt});
}

TEST(Chunk, LlamaEqualsTheReferenceWithAllThatChangesTheOrderOfWork) {
  plan::Module llama = TinyLlama({.tp = 2});
  llama.settings.recompute = plan::Recompute::kSelective;
  llama.settings.tp_overlap = plan::TpOverlap::kBulk;
  llama.transformer.qk_norm = true;
  llama.span_tokens = 6;  // documents of 6, 6 and 4 tokens
  ExpectDecoderEqualsReference({llama, true, true});
}

TEST(Chunk, LlamaEqualsTheReferenceOverCpHoweverItsRanksMeet) {
  using enum plan::ContextParallel;
  for (const plan::ContextParallel how : {kRing, kAllGather, kAllToAll}) {
    for (const plan::Recompute recompute : {plan::Recompute::kNone, plan::Recompute::kSelective}) {
      plan::Module llama = TinyLlama({.cp = 2});
      llama.settings.context_parallel = how;
      llama.settings.recompute = recompute;
      ExpectDecoderEqualsReference({llama});
    }
  }
}

TEST(Chunk, GptEqualsTheReferenceOverFourRanksOfTp) {
  // 200 words are padded to 512: two ranks hold nothing but padding.
  plan::Module gpt = TinyGpt({.tp = 4});
  gpt.transformer.num_kv_heads = 4;
  ExpectDecoderEqualsReference({gpt});
}

TEST(Chunk, DocumentsEqualTheReferenceOverTpAndCp) {
  for (const plan::ContextParallel how :
       {plan::ContextParallel::kRing, plan::ContextParallel::kAllGather}) {
    plan::Module llama = TinyLlama({.tp = 2, .cp = 2});
    llama.settings.context_parallel = how;
    llama.span_tokens = 6;
    ExpectDecoderEqualsReference({llama});
  }
}

TEST(Chunk, RingOfFourEqualsTheReference) {
  plan::Module gpt = TinyGpt({.cp = 4});
  ExpectDecoderEqualsReference({gpt});
}

void ExpectVitEqualsReference(plan::Module vit, double tolerance = 1e-10) {
  const plan::Layout layout = *vit.layout;
  const plan::Program program = plan::Build(TinyJob({vit, TinyLlama(layout)}));
  const plan::Grid& grid = program.modules[0].grid;
  const auto slice = [&](const at::Tensor& whole, base::Rank rank) {
    const std::int64_t rows = whole.size(0) / layout.cp;
    return whole.narrow(0, grid.Coordinate(rank, plan::Axis::kCp) * rows, rows).contiguous();
  };
  const at::Tensor gradient = Values({16, 32}, 2.0);
  const ChunkRequest request{
      .data =
          [&](base::Rank rank) { return backend::BlockData{.patches = slice(Patches(), rank)}; },
      .output_gradient = [&](base::Rank rank) { return slice(gradient, rank); }};
  const ChunkResult result = RunChunk(program, request);
  const NamedTensors leaves = Leaves(result.weights);
  const at::Tensor output = ReferenceEncoder(vit, leaves, Patches());
  torch::autograd::backward({output}, {gradient});
  for (const base::Rank rank : grid.Ranks()) {
    ExpectClose(result.outputs[rank.index()], slice(output.detach(), rank), tolerance, "output");
  }
  ExpectGradients(result, leaves, tolerance);
}

TEST(Chunk, VitEqualsTheReferenceOnOneRank) { ExpectVitEqualsReference(TinyVit({})); }

TEST(Chunk, VitEqualsTheReferenceOverTp) {
  for (const bool sequence_parallel : {false, true}) {
    plan::Module vit = TinyVit({.tp = 2});
    vit.settings.sequence_parallel = sequence_parallel;
    ExpectVitEqualsReference(vit);
  }
}

TEST(Chunk, VitEqualsTheReferenceOverCpHoweverItsRanksMeet) {
  using enum plan::ContextParallel;
  for (const plan::ContextParallel how : {kRing, kAllGather, kAllToAll}) {
    // Slices of 16 tokens hold two images of 8; three of 6 make spans that slices cut.
    for (const std::int64_t span : {8, 6}) {
      plan::Module vit = TinyVit({.cp = 2});
      vit.settings.context_parallel = how;
      vit.span_tokens = span;
      vit.transformer.rotary = span == 6;
      ExpectVitEqualsReference(vit);
    }
  }
}

TEST(Chunk, ProjectorsOfOneAndThreeLayersEndInAGather) {
  for (const int num_layers : {1, 3}) {
    plan::Module vit = TinyVit({.tp = 2});
    vit.projector->num_layers = num_layers;
    ExpectVitEqualsReference(vit);
  }
}

TEST(Chunk, FrozenLlmPassesGradientsAndHasNone) {
  plan::Module llama = TinyLlama({.tp = 2});
  llama.settings.frozen = true;
  // An encoder in front is trained, or nothing would run backward.
  const plan::Program program = plan::Build(TinyJob({TinyVit({.tp = 2}), llama}));
  const at::Tensor boundary = Values({3, 32}, 0.9);
  ChunkRequest request{.module = 1, .data = [](base::Rank) { return DecoderData(); }};
  request.boundary = {boundary};
  const ChunkResult result = RunChunk(program, request);
  EXPECT_TRUE(result.gradients.empty());
  const at::Tensor rows = boundary.clone().set_requires_grad(true);
  torch::autograd::backward({ReferenceDecoder(llama, result.weights, DecoderData(), rows)}, {});
  for (const auto& gradients : result.boundary_gradients) {
    ExpectClose(gradients[0], rows.grad(), 1e-10, "boundary");
  }
}

TEST(Chunk, ProjectorOfTheLlmMapsWhatArrives) {
  plan::Module vit = TinyVit({.tp = 2});
  vit.projector->place = plan::Projector::Place::kWithLlm;
  const plan::Program program = plan::Build(TinyJob({vit, TinyLlama({.tp = 2})}));
  const at::Tensor boundary = Values({3, 32}, 0.9);  // two tokens of 16 wide each
  ChunkRequest request{.module = 1, .data = [](base::Rank) { return DecoderData(); }};
  request.boundary = {boundary};
  const ChunkResult result = RunChunk(program, request);
  const NamedTensors leaves = Leaves(result.weights);
  const at::Tensor rows = boundary.clone().set_requires_grad(true);
  const at::Tensor inner = at::gelu(at::linear(rows, leaves.at("vit.projector.0")), "tanh");
  const at::Tensor mapped = at::linear(inner, leaves.at("vit.projector.1"));
  torch::autograd::backward({ReferenceDecoder(TinyLlama({}), leaves, DecoderData(), mapped)}, {});
  for (const auto& gradients : result.boundary_gradients) {
    ExpectClose(gradients[0], rows.grad(), 1e-10, "boundary");
  }
  ExpectGradients(result, leaves, 1e-10);
}

TEST(Chunk, EncoderOfAProjectorAtTheLlmGivesWholeShuffledTokens) {
  plan::Module vit = TinyVit({.tp = 2});
  vit.projector->place = plan::Projector::Place::kWithLlm;
  const plan::Program program = plan::Build(TinyJob({vit, TinyLlama({.tp = 2})}));
  const at::Tensor gradient = Values({16, 32}, 2.0);
  const ChunkResult result = RunChunk(
      program, {.data = [](base::Rank) { return backend::BlockData{.patches = Patches()}; },
                .output_gradient = [&](base::Rank) { return gradient; }});
  const NamedTensors leaves = Leaves(result.weights);
  vit.projector->num_layers = 0;
  const at::Tensor output = ReferenceEncoder(vit, leaves, Patches());
  torch::autograd::backward({output}, {gradient});
  for (const at::Tensor& found : result.outputs) {
    ExpectClose(found, output.detach(), 1e-10, "output");
  }
  ExpectGradients(result, leaves, 1e-10);
}

TEST(Chunk, NoTokensGiveAnEmptyTensorWithoutACall) {
  const plan::Program program = plan::Build(TinyJob({TinyVit({.tp = 2}), TinyLlama({.tp = 2})}));
  const ChunkResult result =
      RunChunk(program, {.data = [](base::Rank) {
                 return backend::BlockData{.patches = at::zeros({0, 12}, at::kDouble)};
               }});
  EXPECT_EQ(result.outputs[0].sizes(), (std::vector<std::int64_t>{0, 32}));
  EXPECT_TRUE(result.forward_calls[0].empty());
  EXPECT_TRUE(result.backward_calls[0].empty());
  for (const auto& [name, gradient] : result.gradients) {
    EXPECT_EQ(gradient.abs().sum().item<double>(), 0.0) << name;
  }
}

TEST(Chunk, TextOnlyMicrobatchGivesTheBoundaryAnEmptyGradient) {
  ChunkRequest request{.data = [](base::Rank) {
    backend::BlockData data = DecoderData();
    data.placeholders[0].fill_(false);
    return data;
  }};
  request.boundary = {at::zeros({0, 32}, at::kDouble)};
  const ChunkResult result = RunChunk(plan::Build(TinyJob({TinyLlama({.tp = 2})})), request);
  EXPECT_EQ(result.boundary_gradients[0][0].sizes(), (std::vector<std::int64_t>{0, 32}));
}

TEST(Chunk, HalfPrecisionIsNearTheReference) {
  // 8 and 11 bits of mantissa: roundings of 0.4 % and 0.05 % add up through two layers and back.
  for (const auto& [type, tolerance] :
       {std::pair{plan::DType::kBf16, 0.1}, {plan::DType::kFp16, 0.0125}}) {
    plan::Module llama = TinyLlama({.tp = 2});
    llama.settings.precision = type;
    llama.settings.gradient_dtype = plan::DType::kFp32;
    ExpectDecoderEqualsReference({llama}, tolerance);
  }
}

}  // namespace
}  // namespace isthmus::tests
