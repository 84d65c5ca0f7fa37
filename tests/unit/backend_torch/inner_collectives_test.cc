#include <fmt/format.h>
#include <gtest/gtest.h>

#include "backend/torch/modules/chunk.h"
#include "plan/model/layers.h"
#include "tests/unit/backend_torch/chunk_run.h"
#include "tests/unit/backend_torch/small_data.h"
#include "tests/unit/backend_torch/small_models.h"

// What chunks ask of communicators is what plan says a Compute op holds: kinds, groups, bytes,
// order.
namespace isthmus::tests {
namespace {

std::string Line(plan::CollectiveKind kind, const std::string& group, std::int64_t bytes) {
  return fmt::format("{} over {}: {} B", plan::ToText(kind), group, bytes);
}

/// The inner collectives of a work in order; a ring's exchanges one by one.
std::vector<std::string> Planned(const plan::Work& work, const std::string& module) {
  std::vector<std::string> lines;
  for (const plan::RepeatedSegments& part : work.parts) {
    for (int repetition = 0; repetition < part.count; ++repetition) {
      for (const plan::Segment& segment : part.segments) {
        if (!segment.collective) continue;
        const plan::InnerCollective& inner = *segment.collective;
        const bool ring = inner.kind == plan::CollectiveKind::kRingExchange;
        for (int step = 0; step < (ring ? inner.steps : 1); ++step) {
          lines.push_back(
              Line(inner.kind, module + " " + plan::ToText(inner.axes), inner.bytes.value()));
        }
      }
    }
  }
  return lines;
}

/// Calls in order; a message sent to a neighbour is an exchange of a ring.
std::vector<std::string> Called(const std::vector<backend::CommCall>& calls) {
  using Kind = backend::CommCall::Kind;
  std::vector<std::string> lines;
  for (const backend::CommCall& call : calls) {
    if (call.kind == Kind::kReceive) continue;
    const bool sends = call.kind == Kind::kSend;
    lines.push_back(Line(sends ? plan::CollectiveKind::kRingExchange : call.collective, call.group,
                         call.bytes));
  }
  return lines;
}

plan::Module In(plan::Module module, plan::DType precision) {
  module.settings.precision = precision;
  module.settings.gradient_dtype = plan::DType::kFp32;
  return module;
}

/// Runs the module's one chunk and compares every rank with the works of its forward and backward.
void ExpectPlannedCalls(const plan::Program& program, std::uint16_t module,
                        const ChunkRequest& request) {
  const ChunkResult result = RunChunk(program, request);
  const std::string& name = program.modules[module].module.name;
  const auto planned = [&](int rank, plan::Action action) {
    std::vector<std::string> lines;
    for (const std::size_t op : FindComputes(program, rank, module, action)) {
      const plan::Work& work = program.WorkOf(base::Rank{rank}, OpAt(program, rank, op));
      for (std::string& line : Planned(work, name)) lines.push_back(std::move(line));
    }
    return lines;
  };
  for (int rank = 0; rank < program.num_ranks; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    EXPECT_EQ(Called(result.forward_calls[index]), planned(rank, plan::Action::kForward));
    EXPECT_EQ(Called(result.backward_calls[index]), planned(rank, plan::Action::kBackward));
  }
}

void ExpectPlannedDecoder(const plan::Module& module) {
  ChunkRequest request{.data = [](base::Rank) { return DecoderData(); }};
  request.boundary = {Values({3, 32}, 0.9)};
  ExpectPlannedCalls(plan::Build(TinyJob({module})), 0, request);
}

void ExpectPlannedVit(const plan::Module& vit) {
  const plan::Layout layout = *vit.layout;
  const plan::Program program = plan::Build(TinyJob({vit, TinyLlama(layout)}));
  const std::int64_t rows = 32 / layout.cp;
  const ChunkRequest request{.data = [&](base::Rank) {
    return backend::BlockData{.patches = Patches().narrow(0, 0, rows)};
  }};
  ExpectPlannedCalls(program, 0, request);
}

TEST(InnerCollectives, OfDecodersOverTp) {
  for (const plan::DType precision : {plan::DType::kFp32, plan::DType::kBf16}) {
    for (const bool sequence_parallel : {true, false}) {
      for (const plan::TpOverlap overlap : {plan::TpOverlap::kNone, plan::TpOverlap::kBulk}) {
        plan::Module gpt = In(TinyGpt({.tp = 2}), precision);
        gpt.settings.sequence_parallel = sequence_parallel;
        gpt.settings.tp_overlap = overlap;
        ExpectPlannedDecoder(gpt);
      }
    }
  }
}

TEST(InnerCollectives, OfDecodersOverTpAndCp) {
  using enum plan::ContextParallel;
  for (const plan::ContextParallel how : {kRing, kAllGather, kAllToAll}) {
    for (const plan::Recompute recompute : {plan::Recompute::kNone, plan::Recompute::kSelective}) {
      plan::Module llama = In(TinyLlama({.tp = 2, .cp = 2}), plan::DType::kFp32);
      llama.transformer.num_kv_heads = 4;
      llama.settings.context_parallel = how;
      llama.settings.recompute = recompute;
      ExpectPlannedDecoder(llama);
    }
  }
}

TEST(InnerCollectives, OfEncodersAndTheirProjectors) {
  for (const int num_layers : {1, 2, 3}) {
    for (const bool sequence_parallel : {true, false}) {
      plan::Module vit = In(TinyVit({.tp = 2}), plan::DType::kFp32);
      vit.settings.sequence_parallel = sequence_parallel;
      vit.projector->num_layers = num_layers;
      ExpectPlannedVit(vit);
    }
  }
}

TEST(InnerCollectives, OfEncodersOverCp) {
  using enum plan::ContextParallel;
  for (const plan::ContextParallel how : {kRing, kAllGather, kAllToAll}) {
    plan::Module vit = In(TinyVit({.cp = 2}), plan::DType::kFp32);
    vit.settings.context_parallel = how;
    ExpectPlannedVit(vit);
  }
}

TEST(InnerCollectives, OfAFrozenLlmBehindATrainedEncoder) {
  for (const bool sequence_parallel : {true, false}) {
    plan::Module llama = In(TinyLlama({.tp = 2}), plan::DType::kFp32);
    llama.settings.frozen = true;
    llama.settings.sequence_parallel = sequence_parallel;
    ChunkRequest request{.module = 1, .data = [](base::Rank) { return DecoderData(); }};
    request.boundary = {Values({3, 32}, 0.9)};
    ExpectPlannedCalls(plan::Build(TinyJob({TinyVit({.tp = 2}), llama})), 1, request);
  }
}

}  // namespace
}  // namespace isthmus::tests
