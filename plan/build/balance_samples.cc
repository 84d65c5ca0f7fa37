#include "plan/build/balance_samples.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "plan/model/balanced_order.h"
#include "plan/model/flops.h"

namespace isthmus::plan {
namespace {

double SpanFlops(const Module& encoder) {
  const bool trained = !encoder.settings.frozen;
  return ModuleFlops(FlopConvention::kCausal, {.module = &encoder,
                                               .tokens = encoder.span_tokens,
                                               .span = encoder.span_tokens,
                                               .needs_input_gradient = trained,
                                               .needs_weight_gradient = trained})
      .value();
}

// Of each sample; whole numbers, so that equal loads stay equal however they are summed. The
// cheapest span weighs a thousand.
std::vector<std::int64_t> LoadsOf(const std::vector<const Module*>& encoders) {
  constexpr double kCheapest = 1000;
  double least = SpanFlops(*encoders.front());
  for (const Module* encoder : encoders) least = std::min(least, SpanFlops(*encoder));
  std::vector<std::int64_t> loads(encoders.front()->spans_of_sample.size(), 0);
  for (const Module* encoder : encoders) {
    const std::int64_t weight = std::llround(SpanFlops(*encoder) / least * kCheapest);
    for (std::size_t sample = 0; sample < loads.size(); ++sample)
      loads[sample] += encoder->spans_of_sample[sample] * weight;
  }
  return loads;
}

}  // namespace

void BalanceSamples(Job& job) {
  ISTHMUS_CHECK(job.workload.sample_order.empty(), "samples that were moved already");
  std::vector<const Module*> encoders;
  for (const Module& module : job.modules) {
    if (!module.spans_of_sample.empty()) encoders.push_back(&module);
  }
  if (encoders.empty()) return;
  const std::int64_t num_microbatches = job.num_microbatches();
  const std::int64_t size = job.workload.microbatch_size;
  const SampleParts parts{job.workload.global_batch / (num_microbatches * size), num_microbatches,
                          size};
  std::vector<std::int32_t> order = BalancedOrder(LoadsOf(encoders), parts);
  if (order.empty()) return;
  for (Module& module : job.modules) {
    if (module.spans_of_sample.empty()) continue;
    std::vector<std::int32_t> counts;
    counts.reserve(order.size());
    for (const std::int32_t sample : order)
      counts.push_back(module.spans_of_sample[static_cast<std::size_t>(sample)]);
    module.spans_of_sample = std::move(counts);
  }
  job.workload.sample_order = std::move(order);
}

}  // namespace isthmus::plan
