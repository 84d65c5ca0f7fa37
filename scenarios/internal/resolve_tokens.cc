#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "scenarios/internal/resolve.h"

namespace isthmus::scenarios::internal {
namespace {

using plan::ModuleKind;

constexpr std::int64_t kMaxStepTokens = 10'000'000'000;
constexpr std::int64_t kMaxMicrobatches = 65'536;

// The words of an encoder's kind, and what a module says under them.
struct TokenKeys {
  const char* per_span;
  const char* spans;
  const char* fraction;
};
constexpr TokenKeys kVitKeys = {"tokens_per_image", "images_per_sample", "vision_fraction"};
constexpr TokenKeys kAudioKeys = {"tokens_per_clip", "clips_per_sample", "audio_fraction"};

struct TokenValues {
  std::optional<std::int64_t> per_span;
  const SpanCounts& counts;
  std::optional<double> fraction;
};
TokenValues ValuesOf(const ModuleSpec& module) {
  if (module.model.kind == ModuleKind::kVit) {
    const auto& own = module.tokens_per_image;
    return {own ? own : module.model.tokens_per_image, module.images_per_sample,
            module.vision_fraction};
  }
  const auto& own = module.tokens_per_clip;
  return {own ? own : module.model.tokens_per_clip, module.clips_per_sample, module.audio_fraction};
}

void RefuseKeysOfOtherKind(Resolution& resolution, const ModuleSpec& module) {
  const bool is_vit = module.model.kind == ModuleKind::kVit;
  const TokenKeys& keys = is_vit ? kVitKeys : kAudioKeys;
  const TokenKeys& others = is_vit ? kAudioKeys : kVitKeys;
  for (const char* key : {others.per_span, others.spans, others.fraction}) {
    const std::string path = ModulePath(module, key);
    if (!resolution.is_given(path)) continue;
    resolution.Complain(path,
                        fmt::format("does not fit a module of kind {}", is_vit ? "vit" : "audio"),
                        fmt::format("use {}, {} or {}", keys.per_span, keys.spans, keys.fraction));
  }
}

// Spans of one sample from a share of the sequence; 0, with a diagnostic, if they don't fit evenly.
std::int64_t SpansOfFraction(Resolution& resolution, const std::string& path, double fraction,
                             std::int64_t llm_tokens_per_span) {
  const std::int64_t sequence = resolution.spec.workload.sequence_length;
  const std::int64_t tokens = std::llround(fraction * static_cast<double>(sequence));
  if (tokens > 0 && tokens % llm_tokens_per_span == 0) return tokens / llm_tokens_per_span;
  resolution.Complain(path,
                      fmt::format("{} of {} tokens is {}, no whole number of {} tokens each",
                                  fraction, sequence, tokens, llm_tokens_per_span),
                      "change it, or the tokens of an image or clip");
  return 0;
}

// Into how many equal parts a layout cuts a run of tokens. Each cp rank has two slices (zigzag),
// each of which sequence parallelism splits over tp.
std::int64_t Cuts(std::int64_t tp, std::int64_t cp, bool sequence_parallel) {
  return (cp > 1 ? 2 * cp : 1) * (sequence_parallel ? tp : 1);
}

// An encoder's images or clips against the layout that cuts them.
void CheckSpans(Resolution& resolution, const ModuleSpec& module, const ModuleSpec& decoder,
                const EncoderTokens& tokens) {
  const LayoutSpec& layout = module.inherits_layout ? decoder.layout : module.layout;
  // A homogeneous encoder is not cut over cp: every cp rank runs it on all its images.
  const std::int64_t cp = module.inherits_layout ? 1 : layout.cp;
  const std::int64_t cuts = Cuts(layout.tp, cp, module.settings.sequence_parallel);
  if (tokens.span_tokens % cuts != 0) {
    resolution.Complain(ModulePath(module),
                        fmt::format("the {} tokens of an image or clip are no multiple of {}: "
                                    "sequence parallelism over tp {} and cp {} cut them",
                                    tokens.span_tokens, cuts, layout.tp, cp),
                        "use `sequence_parallel: false`, or smaller degrees");
  }
}

// Room in the sequence for the tokens of all encoders, in the sample that has most of them.
void CheckRoom(Resolution& resolution, const std::vector<EncoderTokens>& tokens) {
  const std::int64_t sequence = resolution.spec.workload.sequence_length;
  std::int64_t alike = 0;
  std::size_t samples = 0;
  for (const EncoderTokens& encoder : tokens) {
    if (encoder.spans_of_sample.empty()) alike += encoder.llm_tokens_per_sample;
    samples = std::max(samples, encoder.spans_of_sample.size());
  }
  std::int64_t most = alike;
  std::size_t worst = 0;
  for (std::size_t sample = 0; sample < samples; ++sample) {
    std::int64_t sum = alike;
    for (const EncoderTokens& encoder : tokens) {
      if (!encoder.spans_of_sample.empty())
        sum += encoder.spans_of_sample[sample] * encoder.llm_span_tokens;
    }
    if (sum > most) worst = sample;
    most = std::max(most, sum);
  }
  if (most <= sequence) return;
  resolution.Complain(
      "workload.sequence_length",
      fmt::format("{} tokens have no room for the {} tokens of encoders{}", sequence, most,
                  samples > 0 ? fmt::format(" in sample {} of the batch", worst) : ""));
}

// Bounds of a step as a whole.
void CheckStepSize(Resolution& resolution) {
  const WorkloadSpec& workload = resolution.spec.workload;
  if (*workload.num_microbatches > kMaxMicrobatches) {
    resolution.Complain("workload",
                        fmt::format("a step has {} microbatches", *workload.num_microbatches),
                        fmt::format("allowed: up to {}", kMaxMicrobatches));
  }
  if (*workload.global_batch > kMaxStepTokens / workload.sequence_length) {
    resolution.Complain(
        "workload", "a step has too many tokens",
        fmt::format("allowed: global_batch x sequence_length up to {}", kMaxStepTokens));
  }
}

}  // namespace

EncoderTokens ResolveTokens(Resolution& resolution, const ModuleSpec& module) {
  RefuseKeysOfOtherKind(resolution, module);
  const TokenKeys& keys = module.model.kind == ModuleKind::kVit ? kVitKeys : kAudioKeys;
  const TokenValues values = ValuesOf(module);
  if (!values.per_span) {
    resolution.Complain(ModulePath(module), fmt::format("{} is missing", keys.per_span));
    return {};
  }
  const bool has_counts = values.counts.is_given();
  const std::string counts_path = ModulePath(module, keys.spans);
  if (!has_counts && resolution.is_given(counts_path)) {
    // Else what was written there is wrong, and told already.
    if (resolution.is_sound(counts_path)) {
      resolution.Complain(counts_path, "says no numbers",
                          "as in 1, [1, 0, 2] or {uniform: [0, 2]}");
    }
    return {};
  }
  if (has_counts == values.fraction.has_value()) {
    resolution.Complain(ModulePath(module),
                        fmt::format("{} of {} and {} is needed", has_counts ? "only one" : "one",
                                    keys.spans, keys.fraction));
    return {};
  }
  const std::int64_t merged = module.model.pixel_shuffle * module.model.pixel_shuffle;
  if (*values.per_span % merged != 0) {
    resolution.Complain(ModulePath(module, keys.per_span),
                        fmt::format("{} is no multiple of the {} tokens that pixel_shuffle merges",
                                    *values.per_span, merged));
    return {};
  }
  const std::optional<std::int64_t> spans =
      has_counts ? MostSpans(resolution, values.counts, counts_path)
                 : SpansOfFraction(resolution, ModulePath(module, keys.fraction), *values.fraction,
                                   *values.per_span / merged);
  if (!spans) return {};
  const std::int64_t tokens = *spans * *values.per_span;
  return {.tokens_per_sample = tokens,
          .llm_tokens_per_sample = tokens / merged,
          .span_tokens = *values.per_span,
          .llm_span_tokens = *values.per_span / merged};
}

void ResolveWorkload(Resolution& resolution, const ModuleSpec& decoder) {
  WorkloadSpec& workload = resolution.spec.workload;
  const std::int64_t dp = decoder.layout.dp.value_or(1);
  const std::int64_t per_round = workload.microbatch_size * dp;
  if (workload.document_tokens.value_or(1) > workload.sequence_length) {
    resolution.Complain("workload.document_tokens",
                        fmt::format("{} are more than the {} of a sample",
                                    *workload.document_tokens, workload.sequence_length));
  }
  if (!workload.global_batch && !workload.num_microbatches) {
    resolution.Complain("workload", "global_batch is missing",
                        "give global_batch or num_microbatches");
    return;
  }
  if (!workload.global_batch) {
    workload.global_batch = *workload.num_microbatches * per_round;
    resolution.derived.insert("workload.global_batch");
  }
  if (*workload.global_batch % per_round != 0) {
    resolution.Complain(
        "workload.global_batch",
        fmt::format("{} is no multiple of microbatch_size {} x dp {} of {} = {}",
                    *workload.global_batch, workload.microbatch_size, dp, decoder.name, per_round));
    return;
  }
  const std::int64_t num_microbatches = *workload.global_batch / per_round;
  if (!workload.num_microbatches) {
    workload.num_microbatches = num_microbatches;
    resolution.derived.insert("workload.num_microbatches");
  }
  if (*workload.num_microbatches != num_microbatches) {
    resolution.Complain(
        "workload.num_microbatches",
        fmt::format("{} microbatches, but global_batch {} makes {}", *workload.num_microbatches,
                    *workload.global_batch, num_microbatches),
        "leave one of them out");
  }
  CheckStepSize(resolution);
}

void CheckTokens(Resolution& resolution, const ModuleSpec& decoder,
                 std::vector<EncoderTokens>& tokens) {
  const std::int64_t sequence = resolution.spec.workload.sequence_length;
  const LayoutSpec& llm = decoder.layout;
  const std::int64_t cuts = Cuts(llm.tp, llm.cp, decoder.settings.sequence_parallel);
  if (resolution.is_sound(ModulePath(decoder, "layout")) && sequence % cuts != 0) {
    resolution.Complain("workload.sequence_length",
                        fmt::format("{} is no multiple of {}: cp {} and tp {} of {} cut it",
                                    sequence, cuts, llm.cp, llm.tp, decoder.name));
  }
  const std::vector<ModuleSpec>& modules = resolution.spec.modules;
  for (std::size_t index = 0; index < modules.size(); ++index) {
    if (&modules[index] == &decoder) continue;
    CheckSpans(resolution, modules[index], decoder, tokens[index]);
    if (resolution.spec.workload.global_batch) DealSpans(resolution, modules[index], tokens[index]);
  }
  CheckRoom(resolution, tokens);
}

}  // namespace isthmus::scenarios::internal
