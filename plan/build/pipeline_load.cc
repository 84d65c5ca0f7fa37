#include "plan/build/pipeline_load.h"

#include <algorithm>
#include <variant>

#include "base/check.h"
#include "plan/model/layers.h"
#include "plan/model/sample_spans.h"

namespace isthmus::plan {
namespace {

double KernelSeconds(const Kernel& kernel, const DeviceRates& rates) {
  if (const auto* moved = std::get_if<MemoryBound>(&kernel))
    return static_cast<double>(moved->bytes.value()) / rates.memory;
  if (const auto* gemm = std::get_if<Gemm>(&kernel)) {
    const bool is_fp8 = gemm->dtype == DType::kFp8;
    return FlopsOf(*gemm).value() / (is_fp8 ? rates.products_fp8 : rates.products_16bit);
  }
  return FlopsOf(std::get<Attention>(kernel)).value() / rates.attention;
}

double CollectiveSeconds(const InnerCollective& collective, const BlockShape& shape,
                         const DeviceRates& rates) {
  const double bytes = static_cast<double>(collective.bytes.value());
  if (collective.kind == CollectiveKind::kRingExchange)
    return bytes * collective.steps / rates.link;
  const double ranks = collective.axes == kCp ? shape.cp : shape.tp;
  const double rounds = collective.kind == CollectiveKind::kAllReduce ? 2 : 1;
  return rounds * bytes * (ranks - 1) / ranks / rates.link;
}

double WorkSeconds(const Work& work, const BlockShape& shape, const DeviceRates& rates) {
  double seconds = 0;
  for (const RepeatedSegments& part : work.parts) {
    for (const Segment& segment : part.segments) {
      double kernels = 0;
      for (const Kernel& kernel : segment.kernels) kernels += KernelSeconds(kernel, rates);
      const double wire =
          segment.collective ? CollectiveSeconds(*segment.collective, shape, rates) : 0;
      const bool beside = segment.overlap != Overlap::kNone;
      seconds += part.count * (beside ? std::max(kernels, wire) : kernels + wire);
    }
  }
  return seconds;
}

// All passes of a block over one microbatch.
double BlockSeconds(const BlockShape& shape, const DeviceRates& rates) {
  const ModuleSettings& settings = shape.module->settings;
  const bool is_encoder = shape.module->kind != ModuleKind::kDecoder;
  double seconds = WorkSeconds(DescribeWork(shape, Action::kForward), shape, rates);
  if (settings.backward == BackwardMode::kAbsent || (is_encoder && settings.frozen)) return seconds;
  BlockShape backward = shape;
  backward.needs_weight_gradient = !settings.frozen;
  seconds += WorkSeconds(DescribeWork(backward, Action::kBackward), shape, rates);
  if (settings.recompute == Recompute::kFull)
    seconds += WorkSeconds(DescribeWork(backward, Action::kRecompute), shape, rates);
  return seconds;
}

}  // namespace

PipelineLoad LoadOf(const Job& job, int module, const DeviceRates& rates) {
  const Module& here = job.modules[static_cast<std::size_t>(module)];
  ISTHMUS_CHECK(here.layout.has_value(), "module {} has no layout of its own", here.name);
  PipelineLoad load{.num_layers = here.transformer.num_layers,
                    .num_stages = here.layout->pp * here.layout->vpp};
  if (here.kind != ModuleKind::kDecoder) return load;
  const std::int64_t samples = job.workload.microbatch_size;
  BlockShape shape{.module = &here,
                   .block = {.num_layers = 1},
                   .tp = here.layout->tp,
                   .cp = here.layout->cp,
                   .tokens = samples * job.workload.sequence_length / here.layout->cp,
                   .span = here.span_tokens > 0 ? here.span_tokens : job.workload.sequence_length};
  const double layer = BlockSeconds(shape, rates);
  shape.block = {.stem = true};
  load.first_extra = BlockSeconds(shape, rates) / layer;
  shape.block = {.head = true};
  load.last_extra = BlockSeconds(shape, rates) / layer;
  for (const Module& encoder : job.modules) {
    if (encoder.layout.has_value()) continue;
    const BlockShape whole{.module = &encoder,
                           .block = {.num_layers = encoder.transformer.num_layers},
                           .tp = here.layout->tp,
                           .tokens = samples * EncoderTokens(encoder, job.workload.global_batch) /
                                     job.workload.global_batch,
                           .span = encoder.span_tokens};
    load.first_extra += BlockSeconds(whole, rates) / layer;
  }
  return load;
}

}  // namespace isthmus::plan
