#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "plan/model/sample_spans.h"
#include "scenarios/internal/fields.h"
#include "scenarios/internal/resolve.h"

// How many images or clips each sample has.
namespace isthmus::scenarios::internal {
namespace {

std::optional<std::int64_t> MostOfUniform(Resolution& resolution, const SpanCounts& counts,
                                          const std::string& path) {
  const std::vector<std::int64_t>& range = counts.uniform;
  if (range.size() == 2 && range[0] <= range[1]) return range[1];
  resolution.Complain(path + ".uniform", "is not a least and a most number", "as in [0, 4]");
  return std::nullopt;
}

// By place in the global batch.
std::vector<std::int32_t> Deal(const Resolution& resolution, const ModuleSpec& module) {
  const SpanCounts& counts = CountsOf(module);
  const auto seed = static_cast<std::uint64_t>(counts.seed.value_or(resolution.spec.seed));
  base::RandomStream spans(seed, fmt::format("workload.{}.{}", CountsKey(module), module.name));
  // Modules with one seed have the same samples without any.
  base::RandomStream text_only(seed, "workload.text_only");
  std::vector<std::int32_t> dealt;
  for (std::int64_t sample = 0; sample < *resolution.spec.workload.global_batch; ++sample) {
    if (!counts.each.empty()) {
      const auto at = static_cast<std::size_t>(sample) % counts.each.size();
      dealt.push_back(static_cast<std::int32_t>(counts.each[at]));
      continue;
    }
    const bool has_none = text_only.Chance(counts.text_only_fraction);
    const std::int64_t drawn = spans.UniformInt(counts.uniform[0], counts.uniform[1]);
    dealt.push_back(has_none ? 0 : static_cast<std::int32_t>(drawn));
  }
  return dealt;
}

}  // namespace

const SpanCounts& CountsOf(const ModuleSpec& module) {
  return module.model.kind == plan::ModuleKind::kVit ? module.images_per_sample
                                                     : module.clips_per_sample;
}

const char* CountsKey(const ModuleSpec& module) {
  return module.model.kind == plan::ModuleKind::kVit ? "images_per_sample" : "clips_per_sample";
}

std::optional<std::int64_t> MostSpans(Resolution& resolution, const SpanCounts& counts,
                                      const std::string& path) {
  if (counts.fixed) return counts.fixed;
  if (!counts.each.empty() && !counts.uniform.empty()) {
    resolution.Complain(path, "only one of each and uniform is needed");
    return std::nullopt;
  }
  if (!counts.uniform.empty()) return MostOfUniform(resolution, counts, path);
  if (counts.text_only_fraction > 0.0) {
    resolution.Complain(path + ".text_only_fraction", "is for counts that are drawn",
                        "write zeros into `each`");
    return std::nullopt;
  }
  if (counts.seed) {
    resolution.Complain(path + ".seed", "is for counts that are drawn", "leave it out");
    return std::nullopt;
  }
  return *std::max_element(counts.each.begin(), counts.each.end());
}

void DealSpans(Resolution& resolution, const ModuleSpec& module, EncoderTokens& tokens) {
  const SpanCounts& counts = CountsOf(module);
  if (!counts.varies() || tokens.span_tokens == 0) return;
  const std::string path = ModulePath(module, CountsKey(module));
  const std::int64_t batch = *resolution.spec.workload.global_batch;
  if (batch > kSamples.max) {
    resolution.Complain(path, fmt::format("{} samples are too many to differ", batch),
                        fmt::format("allowed: global_batch up to {}", kSamples.max));
    return;
  }
  if (static_cast<std::int64_t>(counts.each.size()) > batch) {
    resolution.Complain(
        path, fmt::format("{} samples, the global batch has {}", counts.each.size(), batch));
    return;
  }
  std::vector<std::int32_t> dealt = Deal(resolution, module);
  const auto [least, most] = std::minmax_element(dealt.begin(), dealt.end());
  if (*most == 0) {
    resolution.Complain(path, "no sample has anything for the encoder", "leave the module out");
    return;
  }
  const std::int64_t merged = tokens.span_tokens / tokens.llm_span_tokens;
  tokens.tokens_per_sample = *most * tokens.span_tokens;
  tokens.llm_tokens_per_sample = tokens.tokens_per_sample / merged;
  if (*least < *most) tokens.spans_of_sample = std::move(dealt);
}

std::vector<std::string> LaneAssumptions(const plan::Job& job) {
  std::vector<std::string> assumptions;
  if (!job.workload.sample_order.empty()) {
    assumptions.emplace_back(
        "samples are dealt out by their encoders' FLOP, which every rank knows before the step; "
        "moving their data takes no time");
  }
  const bool window = job.placement == plan::Placement::kColocated;
  const plan::Workload& workload = job.workload;
  const std::int64_t count = window ? 1 : job.num_microbatches();
  for (const plan::Module& module : job.modules) {
    if (module.kind == plan::ModuleKind::kDecoder || !module.layout) continue;
    const plan::SampleSpans spans = plan::LlmSpans(module);
    std::int64_t most = 0;  // in one go: a window, or a microbatch of all shards
    for (std::int64_t microbatch = 0; microbatch < count; ++microbatch) {
      std::int64_t sum = window ? spans.SpansBefore(workload.global_batch) : 0;
      for (std::int64_t first = microbatch * workload.microbatch_size;
           !window && first < workload.global_batch; first += count * workload.microbatch_size) {
        sum += spans.SpansBefore(first + workload.microbatch_size) - spans.SpansBefore(first);
      }
      most = std::max(most, sum);
    }
    if (most >= module.layout->dp) continue;
    assumptions.push_back(fmt::format(
        "module {}: {} has at most {} images or clips for {} data parallel copies: some of them "
        "have none",
        module.name, window ? "a step" : "a round of microbatches", most, module.layout->dp));
  }
  return assumptions;
}

}  // namespace isthmus::scenarios::internal
