#include "backend/torch/modules/chunk.h"

#include <torch/csrc/autograd/autograd.h>

#include <gtest/gtest.h>

#include "tests/unit/backend_torch/chunk_run.h"
#include "tests/unit/backend_torch/reference_model.h"
#include "tests/unit/backend_torch/small_models.h"

namespace isthmus::tests {
namespace {

/// Numbers that look like no others: sines of every index.
at::Tensor Values(at::IntArrayRef shape, double phase) {
  std::int64_t size = 1;
  for (const std::int64_t extent : shape) size *= extent;
  return at::arange(size, at::kDouble).mul_(1.7).add_(phase).sin_().view(shape);
}

/// Two samples of 16 tokens of 200 words; the first sample's tokens 2, 3 and 9 are placeholders.
backend::BlockData DecoderData() {
  backend::BlockData data;
  data.tokens = at::arange(32).mul_(37).remainder_(200).view({2, 16});
  data.labels = at::arange(32).mul_(53).add_(11).remainder_(200).view({2, 16});
  data.loss_mask = at::arange(32).remainder_(5).ne_(0).to(at::kBool).view({2, 16});
  data.placeholders = {at::zeros({2, 16}, at::kBool)};
  for (const std::int64_t token : {2, 3, 9}) data.placeholders[0][0][token] = true;
  return data;
}

/// The vit's window: 2 samples of 2 images of 8 patches; the slice of each cp rank.
at::Tensor Patches() { return Values({32, 12}, 0.3); }

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

TEST(Chunk, ProjectorsOfOneAndThreeLayersEndInAGather) {
  for (const int num_layers : {1, 3}) {
    plan::Module vit = TinyVit({.tp = 2});
    vit.projector->num_layers = num_layers;
    ExpectVitEqualsReference(vit);
  }
}

}  // namespace
}  // namespace isthmus::tests
