#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "scenarios/internal/resolve.h"

namespace isthmus::scenarios::internal {
namespace {

using plan::ModuleKind;
using plan::Placement;

constexpr std::int64_t kMaxStepTokens = 10'000'000'000;

std::int64_t KvHeads(const ModelSpec& model) {
  return model.num_kv_heads.value_or(model.num_heads);
}

// "use 1, 2, 4 or 8": the degrees that divide `number`, up to a bound that people would use.
std::string DivisorHint(std::int64_t number) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t divisor = 1; divisor <= std::min<std::int64_t>(number, 64); ++divisor) {
    if (number % divisor == 0) divisors.push_back(divisor);
  }
  if (divisors.size() == 1) return "use 1";
  const std::int64_t last = divisors.back();
  divisors.pop_back();
  return fmt::format("use {} or {}", fmt::join(divisors, ", "), last);
}

// The checks of one module. A class so that they share what they look at.
class ModuleCheck {
 public:
  ModuleCheck(Resolution& resolution, const ModuleSpec& module, const ModuleSpec& decoder,
              Placement placement)
      : resolution_(resolution),
        module_(module),
        decoder_(decoder),
        placement_(placement),
        is_encoder_(&module != &decoder),
        layout_(module.inherits_layout ? decoder.layout : module.layout) {}

  void Run() {
    CheckNotBuilt();
    CheckModel();
    CheckTensorParallel();
    CheckPipeline();
    CheckSettings();
    CheckEncoderOnly();
  }

 private:
  void Complain(std::string_view key, std::string_view message, std::string hint = {}) {
    resolution_.Complain(ModulePath(module_, key), message, std::move(hint));
  }
  // Of a layout that is inherited the module itself is to blame.
  std::string LayoutKey(std::string_view degree) const {
    return module_.inherits_layout ? "layout" : JoinPath("layout", degree);
  }

  void CheckNotBuilt() {
    if (module_.inherits_layout) return;
    const std::pair<const char*, std::int64_t> degrees[] = {
        {"vpp", layout_.vpp}, {"ep", layout_.ep}, {"etp", layout_.etp}};
    for (const auto& [degree, value] : degrees) {
      if (value == 1) continue;
      Complain(LayoutKey(degree), fmt::format("{} is known but not built yet", value), "use 1");
    }
    if (is_encoder_ && placement_ == Placement::kColocated && layout_.pp > 1) {
      Complain("layout.pp",
               fmt::format("{} of a colocated encoder is known but not built yet", layout_.pp),
               "use 1: a colocated encoder runs before and after the LLM's pipeline");
    }
  }

  void CheckModel() {
    const ModelSpec& model = module_.model;
    const bool is_decoder_model = model.kind == ModuleKind::kDecoder;
    if (is_decoder_model && model.vocab_size == 0) {
      Complain("model.vocab_size", "is missing: a decoder needs a vocabulary");
    }
    if (!is_decoder_model && (model.vocab_size != 0 || model.tied_embeddings)) {
      Complain("model", "an encoder has no vocabulary", "leave vocab_size and tied_embeddings out");
    }
    if (!model.head_dim && model.hidden % model.num_heads != 0) {
      Complain("model.num_heads",
               fmt::format("{} does not divide hidden {}", model.num_heads, model.hidden),
               "give head_dim if heads are not hidden / num_heads wide");
    }
    if (model.num_heads % KvHeads(model) != 0) {
      Complain("model.num_kv_heads",
               fmt::format("{} does not divide num_heads {}", KvHeads(model), model.num_heads),
               DivisorHint(model.num_heads));
    }
    if (model.pixel_shuffle != 1 && model.kind != ModuleKind::kVit) {
      Complain("model.pixel_shuffle", "is for models of kind vit");
    }
  }

  void CheckTensorParallel() {
    const ModelSpec& model = module_.model;
    const std::int64_t tp = layout_.tp;
    const std::string key = LayoutKey("tp");
    const std::int64_t common = std::gcd(std::gcd(model.num_heads, model.hidden), model.ffn_hidden);
    const std::pair<const char*, std::int64_t> widths[] = {
        {"num_heads", model.num_heads}, {"hidden", model.hidden}, {"ffn_hidden", model.ffn_hidden}};
    for (const auto& [name, width] : widths) {
      if (width % tp == 0) continue;
      Complain(key, fmt::format("{} does not divide {} {}", tp, name, width), DivisorHint(common));
      return;
    }
    const std::int64_t kv_heads = KvHeads(model);
    if (kv_heads % tp != 0 && tp % kv_heads != 0) {
      Complain(
          key,
          fmt::format("{} neither divides num_kv_heads {} nor is a multiple of it", tp, kv_heads),
          DivisorHint(std::gcd(common, kv_heads)));
    }
  }

  void CheckPipeline() {
    if (module_.inherits_layout) return;
    const std::int64_t num_layers = module_.model.num_layers;
    if (num_layers < layout_.pp) {
      Complain("layout.pp",
               fmt::format("{} stages are more than the {} layers", layout_.pp, num_layers));
    }
    const std::vector<std::int64_t>& stages = layout_.stage_layers;
    if (stages.empty()) return;
    if (static_cast<std::int64_t>(stages.size()) != layout_.pp) {
      Complain("layout.stage_layers",
               fmt::format("lists {} stages, but pp is {}", stages.size(), layout_.pp));
      return;
    }
    const std::int64_t sum = std::accumulate(stages.begin(), stages.end(), std::int64_t{0});
    if (sum != num_layers) {
      Complain("layout.stage_layers",
               fmt::format("adds up to {}, but the model has {} layers", sum, num_layers));
    }
  }

  void CheckSettings() {
    const plan::ModuleSettings& settings = module_.settings;
    if (layout_.dp && *layout_.dp % settings.optimizer_instances != 0) {
      Complain("optimizer_instances",
               fmt::format("{} does not divide dp {}", settings.optimizer_instances, *layout_.dp),
               DivisorHint(*layout_.dp));
    }
    if (settings.recompute_layers > 0 && settings.recompute != plan::Recompute::kFull) {
      Complain("recompute_layers", "needs `recompute: full`");
    }
    const std::int64_t stages = module_.inherits_layout ? 1 : layout_.pp;
    const std::int64_t stage_layers = (module_.model.num_layers + stages - 1) / stages;
    if (settings.recompute_layers > stage_layers && layout_.stage_layers.empty()) {
      Complain("recompute_layers", fmt::format("{} is more than the {} layers of a stage",
                                               settings.recompute_layers, stage_layers));
    }
    if (settings.offload_parameters && !(is_encoder_ && placement_ == Placement::kColocated)) {
      Complain("offload_parameters", "is for colocated encoders",
               "leave it out, or give the encoder a layout of its own on the LLM's ranks");
    }
    if (settings.backward == plan::BackwardMode::kAbsent && !is_encoder_) {
      Complain("backward", "an LLM can't leave its backward out", "use real");
    }
  }

  void CheckEncoderOnly() {
    if (is_encoder_) {
      CheckProjector();
      return;
    }
    if (module_.has_projector && resolution_.is_given(ModulePath(module_, "projector"))) {
      Complain("projector", "belongs to an encoder",
               "move it to the encoder that feeds this module");
    }
  }

  void CheckProjector() {
    const std::int64_t llm_hidden = decoder_.model.hidden;
    if (!module_.has_projector && module_.model.hidden != llm_hidden) {
      Complain("projector",
               fmt::format("none, but the encoder is {} wide and the LLM {}", module_.model.hidden,
                           llm_hidden),
               "leave `projector: none` out");
    }
    const std::int64_t inner = module_.projector.hidden;
    const bool with_llm = module_.projector.place == plan::Projector::Place::kWithLlm;
    const std::int64_t tp = with_llm ? decoder_.layout.tp : layout_.tp;
    if (inner % tp != 0) {
      Complain("projector.hidden", fmt::format("tp {} does not divide {}", tp, inner));
    }
  }

  Resolution& resolution_;
  const ModuleSpec& module_;
  const ModuleSpec& decoder_;
  Placement placement_;
  bool is_encoder_;
  const LayoutSpec& layout_;
};

// The words of an encoder's kind.
struct TokenKeys {
  const char* per_span;
  const char* spans;
  const char* fraction;
};
constexpr TokenKeys kVitKeys = {"tokens_per_image", "images_per_sample", "vision_fraction"};
constexpr TokenKeys kAudioKeys = {"tokens_per_clip", "clips_per_sample", "audio_fraction"};

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

}  // namespace

std::string ModulePath(const ModuleSpec& module, std::string_view key) {
  const std::string path = JoinPath("modules", module.name);
  return key.empty() ? path : JoinPath(path, key);
}

void CheckModule(Resolution& resolution, const ModuleSpec& module, const ModuleSpec& decoder,
                 plan::Placement placement) {
  ModuleCheck(resolution, module, decoder, placement).Run();
}

EncoderTokens ResolveTokens(Resolution& resolution, const ModuleSpec& module) {
  const bool is_vit = module.model.kind == ModuleKind::kVit;
  const TokenKeys& keys = is_vit ? kVitKeys : kAudioKeys;
  const TokenKeys& others = is_vit ? kAudioKeys : kVitKeys;
  for (const char* key : {others.per_span, others.spans, others.fraction}) {
    const std::string path = ModulePath(module, key);
    if (resolution.is_given(path)) {
      resolution.Complain(
          path, fmt::format("does not fit a module of kind {}", is_vit ? "vit" : "audio"),
          fmt::format("use {}, {} or {}", keys.per_span, keys.spans, keys.fraction));
    }
  }
  auto per_span = is_vit ? module.tokens_per_image : module.tokens_per_clip;
  if (!per_span) per_span = is_vit ? module.model.tokens_per_image : module.model.tokens_per_clip;
  const auto spans = is_vit ? module.images_per_sample : module.clips_per_sample;
  const auto fraction = is_vit ? module.vision_fraction : module.audio_fraction;
  if (!per_span || spans.has_value() == fraction.has_value()) {
    const bool says_both = spans && fraction;
    resolution.Complain(ModulePath(module), !per_span ? fmt::format("{} is missing", keys.per_span)
                                                      : fmt::format("{} of {} and {} is needed",
                                                                    says_both ? "only one" : "one",
                                                                    keys.spans, keys.fraction));
    return {};
  }
  const std::int64_t merged = module.model.pixel_shuffle * module.model.pixel_shuffle;
  if (*per_span % merged != 0) {
    resolution.Complain(ModulePath(module, keys.per_span),
                        fmt::format("{} is no multiple of the {} tokens that pixel_shuffle merges",
                                    *per_span, merged));
    return {};
  }
  const std::int64_t num_spans =
      spans ? *spans
            : SpansOfFraction(resolution, ModulePath(module, keys.fraction), *fraction,
                              *per_span / merged);
  const std::int64_t tokens = num_spans * *per_span;
  return {tokens, tokens / merged, *per_span, num_spans};
}

void ResolveWorkload(Resolution& resolution, const ModuleSpec& decoder) {
  WorkloadSpec& workload = resolution.spec.workload;
  const std::int64_t per_round = workload.microbatch_size * decoder.layout.dp.value_or(1);
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
    resolution.Complain("workload.global_batch",
                        fmt::format("{} is no multiple of microbatch_size {} x dp {} of {} = {}",
                                    *workload.global_batch, workload.microbatch_size,
                                    decoder.layout.dp.value_or(1), decoder.name, per_round));
    return;
  }
  const std::int64_t num_microbatches = *workload.global_batch / per_round;
  if (workload.num_microbatches && *workload.num_microbatches != num_microbatches) {
    resolution.Complain(
        "workload.num_microbatches",
        fmt::format("{} microbatches, but global_batch {} makes {}", *workload.num_microbatches,
                    *workload.global_batch, num_microbatches),
        "leave one of them out");
  }
  if (!workload.num_microbatches) resolution.derived.insert("workload.num_microbatches");
  workload.num_microbatches = num_microbatches;
  constexpr std::int64_t kMaxMicrobatches = 65'536;
  if (num_microbatches > kMaxMicrobatches) {
    resolution.Complain("workload", fmt::format("a step has {} microbatches", num_microbatches),
                        fmt::format("allowed: up to {}", kMaxMicrobatches));
  }
  if (*workload.global_batch > kMaxStepTokens / workload.sequence_length) {
    resolution.Complain(
        "workload", "a step has too many tokens",
        fmt::format("allowed: global_batch x sequence_length up to {}", kMaxStepTokens));
  }
}

void CheckTokens(Resolution& resolution, const ModuleSpec& decoder, plan::Placement placement,
                 const std::vector<EncoderTokens>& tokens) {
  const WorkloadSpec& workload = resolution.spec.workload;
  const LayoutSpec& llm = decoder.layout;
  // Each cp rank has two slices of the sequence (zigzag), each of which sequence parallelism
  // splits.
  const std::int64_t pieces =
      (llm.cp > 1 ? 2 * llm.cp : 1) * (decoder.settings.sequence_parallel ? llm.tp : 1);
  const bool is_cut_soundly = resolution.is_sound(ModulePath(decoder, "layout"));
  if (is_cut_soundly && workload.sequence_length % pieces != 0) {
    resolution.Complain(
        "workload.sequence_length",
        fmt::format("{} is no multiple of {}: cp {} and tp {} of {} cut it",
                    workload.sequence_length, pieces, llm.cp, llm.tp, decoder.name));
  }
  std::int64_t llm_tokens = 0;
  const std::vector<ModuleSpec>& modules = resolution.spec.modules;
  for (std::size_t index = 0; index < modules.size(); ++index) {
    const ModuleSpec& module = modules[index];
    if (&module == &decoder) continue;
    llm_tokens += tokens[index].llm_tokens_per_sample;
    const LayoutSpec& own = module.inherits_layout ? llm : module.layout;
    const std::int64_t cp = module.inherits_layout ? 1 : own.cp;
    const std::int64_t cuts =
        (cp > 1 ? 2 * cp : 1) * (module.settings.sequence_parallel ? own.tp : 1);
    const std::int64_t span = tokens[index].span_tokens;
    if (span % cuts != 0) {
      resolution.Complain(ModulePath(module),
                          fmt::format("the {} tokens of an image or clip are no multiple of {}: "
                                      "sequence parallelism over tp {} and cp {} cut them",
                                      span, cuts, own.tp, cp),
                          "use `sequence_parallel: false`, or smaller degrees");
    }
    const bool is_laid_out = resolution.is_sound(ModulePath(module, "layout"));
    if (module.inherits_layout || !is_laid_out || tokens[index].spans_per_sample == 0) continue;
    const bool is_colocated = placement == plan::Placement::kColocated;
    const std::int64_t samples = is_colocated ? workload.global_batch.value_or(1)
                                              : workload.microbatch_size * llm.dp.value_or(1);
    const std::int64_t spans = samples * tokens[index].spans_per_sample;
    if (spans < own.dp.value_or(1)) {
      resolution.Complain(
          ModulePath(module, "layout.dp"),
          fmt::format("{} is more than the {} images or clips of {}", own.dp.value_or(1), spans,
                      is_colocated ? "a step" : "a round of microbatches"),
          "use a smaller dp, or a larger batch");
    }
  }
  if (llm_tokens > workload.sequence_length) {
    resolution.Complain("workload.sequence_length",
                        fmt::format("{} tokens have no room for the {} tokens of encoders",
                                    workload.sequence_length, llm_tokens));
  }
}

}  // namespace isthmus::scenarios::internal
