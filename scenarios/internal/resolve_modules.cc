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
    CheckHeadExchange();
    CheckPipeline();
    CheckChunks();
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
    const std::pair<const char*, std::int64_t> degrees[] = {{"ep", layout_.ep},
                                                            {"etp", layout_.etp}};
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

  // An exchange of sequences for heads gives each rank of the cp group heads of its own.
  void CheckHeadExchange() {
    const std::int64_t heads = module_.model.num_heads / layout_.tp;
    const bool exchanges =
        layout_.cp > 1 && module_.settings.context_parallel == plan::ContextParallel::kAllToAll;
    if (module_.inherits_layout || !exchanges) return;
    const std::int64_t kv_heads = std::max<std::int64_t>(KvHeads(module_.model) / layout_.tp, 1);
    if (heads % layout_.cp != 0) {
      Complain("layout.cp",
               fmt::format("{} does not divide the {} heads of a rank, which "
                           "context_parallel all_to_all exchanges for sequences",
                           layout_.cp, heads),
               DivisorHint(heads));
    } else if (kv_heads % layout_.cp != 0 && layout_.cp % kv_heads != 0) {
      Complain("layout.cp",
               fmt::format("{} neither divides the {} key-value heads of a rank nor is "
                           "a multiple of them",
                           layout_.cp, kv_heads),
               DivisorHint(std::gcd(heads, kv_heads)));
    }
  }

  void CheckPipeline() {
    if (module_.inherits_layout) return;
    const std::int64_t num_layers = module_.model.num_layers;
    const std::vector<std::int64_t>& stages = layout_.stage_layers;
    const std::int64_t num_stages = layout_.pp * layout_.vpp;
    // An LLM's ends may have embedding and head alone.
    const bool ends_alone = !is_encoder_ && stages.empty() && num_layers + 2 == num_stages &&
                            layout_.split == LayerSplit::kEven;
    if (stages.empty() && num_layers < num_stages && !ends_alone) {
      Complain(layout_.vpp > 1 ? "layout.vpp" : "layout.pp",
               fmt::format("{} stages are more than the {} layers", num_stages, num_layers));
    }
    if (stages.empty()) return;
    if (static_cast<std::int64_t>(stages.size()) != num_stages) {
      const std::string degrees = layout_.vpp > 1 ? fmt::format("pp x vpp is {}", num_stages)
                                                  : fmt::format("pp is {}", layout_.pp);
      Complain("layout.stage_layers",
               fmt::format("lists {} stages, but {}", stages.size(), degrees));
      return;
    }
    const std::int64_t sum = std::accumulate(stages.begin(), stages.end(), std::int64_t{0});
    if (sum != num_layers) {
      Complain("layout.stage_layers",
               fmt::format("adds up to {}, but the model has {} layers", sum, num_layers));
    }
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      const bool is_end = !is_encoder_ && (stage == 0 || stage + 1 == stages.size());
      if (stages[stage] > 0 || is_end) continue;
      Complain("layout.stage_layers", fmt::format("stage {} would have nothing to do", stage),
               "only a decoder's first and last stage may have embedding and head alone");
    }
  }

  void CheckChunks() {
    if (module_.inherits_layout || layout_.vpp == 1) return;
    if (is_encoder_) {
      Complain("layout.vpp",
               fmt::format("{} of an encoder is known but not built yet", layout_.vpp), "use 1");
    } else if (placement_ == Placement::kNonColocated) {
      Complain("layout.vpp",
               fmt::format("{} beside encoders on ranks of their own is known but not built yet",
                           layout_.vpp),
               "use 1: the schedule of several pipelines has one chunk a stage");
    } else if (layout_.pp == 1) {
      Complain("layout.vpp", fmt::format("{} chunks need at least 2 stages", layout_.vpp),
               "use 1, or a larger pp");
    }
    if (layout_.split == LayerSplit::kSearch && layout_.stage_layers.empty()) {
      Complain("layout.split", "search with several chunks a rank is known but not built yet",
               "use even, or give stage_layers");
    }
  }

  void CheckSettings() {
    const plan::ModuleSettings& settings = module_.settings;
    if (layout_.dp && *layout_.dp % settings.optimizer_instances != 0) {
      Complain("optimizer_instances",
               fmt::format("{} does not divide dp {}", settings.optimizer_instances, *layout_.dp),
               DivisorHint(*layout_.dp));
    }
    if (settings.fp8_primary_weights && settings.precision != plan::DType::kFp8) {
      Complain("fp8_primary_weights", "needs `precision: fp8`");
    }
    if (settings.precision == plan::DType::kFp8 &&
        settings.framework->memory->saved_fp8 == nullptr) {
      Complain("precision", fmt::format("{} has no fp8", settings.framework->name), "use bf16");
    }
    if (settings.recompute_layers > 0 && settings.recompute != plan::Recompute::kFull) {
      Complain("recompute_layers", "needs `recompute: full`");
    }
    const std::int64_t stages = module_.inherits_layout ? 1 : layout_.pp * layout_.vpp;
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
    // Pixel shuffle puts the widths of the tokens it merges side by side.
    const std::int64_t merged = module_.model.pixel_shuffle * module_.model.pixel_shuffle;
    const std::int64_t width = module_.model.hidden * merged;
    if (!module_.has_projector && width != llm_hidden) {
      Complain("projector",
               fmt::format("none, but the encoder is {} wide and the LLM {}", width, llm_hidden),
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

}  // namespace

std::string ModulePath(const ModuleSpec& module, std::string_view key) {
  const std::string path = JoinPath("modules", module.name);
  return key.empty() ? path : JoinPath(path, key);
}

void CheckModule(Resolution& resolution, const ModuleSpec& module, const ModuleSpec& decoder,
                 plan::Placement placement) {
  ModuleCheck(resolution, module, decoder, placement).Run();
}

}  // namespace isthmus::scenarios::internal
