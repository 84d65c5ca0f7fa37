#include "scenarios/internal/resolve.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "plan/build/balance_samples.h"
#include "plan/schedule/interleaved.h"
#include "scenarios/internal/custom_fabric.h"
#include "topology/check_spec.h"

namespace isthmus::scenarios::internal {
namespace {

using plan::ModuleKind;

// Names become parts of paths, tracks and tables.
bool IsGoodName(std::string_view name) {
  const auto is_good = [](char symbol) {
    return (symbol >= 'a' && symbol <= 'z') || (symbol >= 'A' && symbol <= 'Z') ||
           (symbol >= '0' && symbol <= '9') || symbol == '_' || symbol == '-';
  };
  return !name.empty() && name.size() <= 40 && std::ranges::all_of(name, is_good);
}

int IndexOf(const std::vector<ModuleSpec>& modules, std::string_view name) {
  const auto found = std::ranges::find(modules, name, &ModuleSpec::name);
  return found == modules.end() ? -1 : static_cast<int>(found - modules.begin());
}

plan::Layout ToLayout(const LayoutSpec& spec) {
  plan::Layout layout;
  layout.tp = static_cast<int>(spec.tp);
  layout.cp = static_cast<int>(spec.cp);
  layout.pp = static_cast<int>(spec.pp);
  layout.vpp = static_cast<int>(spec.vpp);
  layout.dp = static_cast<int>(*spec.dp);
  layout.order = spec.order;
  layout.first_rank = static_cast<int>(spec.first_rank);
  for (const std::int64_t layers : spec.stage_layers) {
    layout.stage_layers.push_back(static_cast<int>(layers));
  }
  return layout;
}

plan::Transformer ToTransformer(const ModelSpec& model) {
  plan::Transformer transformer;
  transformer.num_layers = static_cast<int>(model.num_layers);
  transformer.hidden = model.hidden;
  transformer.ffn_hidden = model.ffn_hidden;
  transformer.num_heads = model.num_heads;
  transformer.num_kv_heads = model.num_kv_heads.value_or(model.num_heads);
  transformer.head_dim = model.head_dim.value_or(model.hidden / model.num_heads);
  transformer.gated_mlp = model.gated_mlp;
  transformer.rotary = model.rotary;
  transformer.vocab_size = model.vocab_size;
  transformer.tied_embeddings = model.tied_embeddings;
  transformer.hidden_dropout = model.hidden_dropout;
  transformer.qk_norm = model.qk_norm;
  return transformer;
}

plan::Module ToModule(const ModuleSpec& spec, const EncoderTokens& tokens, std::int64_t llm_hidden,
                      std::int64_t document_tokens) {
  plan::Module module;
  module.name = spec.name;
  module.kind = spec.model.kind;
  module.transformer = ToTransformer(spec.model);
  module.settings = spec.settings;
  if (!spec.inherits_layout) module.layout = ToLayout(spec.layout);
  if (spec.model.kind == ModuleKind::kDecoder) {
    module.span_tokens = document_tokens;
    return module;
  }
  if (spec.has_projector) {
    module.projector = spec.projector;
    if (module.projector->hidden == 0) module.projector->hidden = llm_hidden;
  }
  module.tokens_per_sample = tokens.tokens_per_sample;
  module.llm_tokens_per_sample = tokens.llm_tokens_per_sample;
  module.span_tokens = tokens.span_tokens;
  module.spans_of_sample = tokens.spans_of_sample;
  module.input_width = spec.model.input_width;
  return module;
}

plan::Job MakeJob(const ScenarioSpec& spec, const ModuleSpec& decoder, plan::Placement placement,
                  const std::vector<EncoderTokens>& tokens) {
  plan::Job job;
  job.name = spec.name;
  for (std::size_t index = 0; index < spec.modules.size(); ++index) {
    job.modules.push_back(ToModule(spec.modules[index], tokens[index], decoder.model.hidden,
                                   spec.workload.document_tokens.value_or(0)));
  }
  for (const EdgeSpec& edge : spec.edges) {
    job.edges.push_back({IndexOf(spec.modules, edge.from), IndexOf(spec.modules, edge.to)});
  }
  job.workload = {spec.workload.sequence_length, *spec.workload.global_batch,
                  spec.workload.microbatch_size};
  job.schedule = spec.schedule;
  job.optimizer = spec.optimizer;
  job.allocator = spec.allocator;
  job.placement = placement;
  job.num_ranks = static_cast<int>(*spec.num_gpus);
  job.num_steps = static_cast<int>(spec.step.num_steps);
  return job;
}

// topology knows best what can be built.
void CheckCluster(Resolution& resolution) {
  SettleCustomFabric(resolution.root, resolution.spec.cluster, resolution.diagnostics);
  for (const topology::SpecMistake& mistake : topology::MistakesOf(resolution.spec.cluster)) {
    resolution.Complain("cluster." + mistake.path, mistake.what, mistake.hint);
  }
}

void CheckTrained(Resolution& resolution) {
  for (const ModuleSpec& module : resolution.spec.modules) {
    const bool is_encoder = module.model.kind != ModuleKind::kDecoder;
    if (!module.settings.frozen) return;
    if (is_encoder && module.has_projector && !module.projector.frozen) return;
  }
  resolution.Complain("modules", "everything is frozen: there is nothing to train",
                      "train at least one module or projector");
}

// Bounds of what checks below go through more than once.
void CheckCounts(Resolution& resolution) {
  constexpr std::size_t kMaxModules = 64;
  constexpr std::size_t kMaxGroups = 1'024;
  const ScenarioSpec& spec = resolution.spec;
  const std::tuple<const char*, std::size_t, std::size_t> counts[] = {
      {"modules", spec.modules.size(), kMaxModules},
      {"edges", spec.edges.size(), kMaxModules * 4},
      {"cluster.node_groups", spec.cluster.node_groups.size(), kMaxGroups}};
  for (const auto& [path, count, allowed] : counts) {
    if (count <= allowed) continue;
    resolution.Complain(path, fmt::format("there are {}", count),
                        fmt::format("allowed: up to {}", allowed));
  }
}

// Whether the modules are known well enough for checks of one against another.
bool CanRelate(const Resolution& resolution) {
  if (resolution.diagnostics.HasAt("modules") || !resolution.is_sound("edges")) return false;
  return std::ranges::all_of(resolution.spec.modules, [&](const ModuleSpec& module) {
    return !resolution.diagnostics.HasAt(ModulePath(module)) &&
           resolution.is_sound(ModulePath(module, "model")) &&
           resolution.is_sound(ModulePath(module, "layout"));
  });
}

void CheckNames(Resolution& resolution) {
  for (const ModuleSpec& module : resolution.spec.modules) {
    if (IsGoodName(module.name)) continue;
    resolution.Complain(ModulePath(module), "is no name for a module",
                        "allowed: up to 40 letters, digits, _ and -");
  }
}

// What every scenario must have.
void CheckPresence(Resolution& resolution) {
  for (const ModuleSpec& module : resolution.spec.modules) {
    const std::string path = ModulePath(module, "model");
    if (!resolution.is_given(path) && resolution.is_sound(path)) {
      resolution.Complain(path, "is missing", "name a file of scenarios/models/, or give its keys");
    }
  }
  if (!resolution.is_given("cluster") && resolution.is_sound("cluster")) {
    resolution.Complain("cluster", "is missing", "name a file of scenarios/clusters/");
  }
}

// More than one projector on the LLM's ranks.
void CheckProjectors(Resolution& resolution) {
  const ModuleSpec* first = nullptr;
  for (const ModuleSpec& module : resolution.spec.modules) {
    const bool is_encoder = module.model.kind != ModuleKind::kDecoder;
    const bool with_llm = module.projector.place == plan::Projector::Place::kWithLlm;
    if (!is_encoder || !module.has_projector || !with_llm) continue;
    if (first != nullptr) {
      resolution.Complain(
          ModulePath(module, "projector.with"),
          fmt::format("llm beside that of {} is known but not built yet", first->name),
          "use `with: encoder`");
    }
    first = &module;
  }
}

// The interleaved schedule of two stages needs groups of equally many microbatches.
void CheckInterleaving(Resolution& resolution, const ModuleSpec& decoder) {
  const std::optional<std::int64_t>& microbatches = resolution.spec.workload.num_microbatches;
  const LayoutSpec& layout = decoder.layout;
  if (!microbatches || layout.vpp == 1 || layout.pp != 2) return;
  if (plan::CanInterleave(2, static_cast<int>(layout.vpp), static_cast<int>(*microbatches))) return;
  resolution.Complain(
      ModulePath(decoder, "layout.vpp"),
      fmt::format("{} chunks on 2 stages need an even number of microbatches, not {}", layout.vpp,
                  *microbatches),
      "use 1, or another global_batch");
}

void CheckDeferral(Resolution& resolution, const ModuleSpec& decoder) {
  if (resolution.spec.schedule.defer_embedding_wgrad == 0 || decoder.layout.pp > 1) return;
  resolution.Complain("schedule.defer_embedding_wgrad",
                      "one stage has no cool-down to move the head's weight gradients to",
                      "use 0, or a larger pp");
}

// The checks that need modules, decoder and ranks to be known.
struct Resolved {
  plan::Placement placement = plan::Placement::kHomogeneous;
  std::vector<EncoderTokens> tokens;
};
Resolved ResolveAll(Resolution& resolution, const ModuleSpec& decoder) {
  const std::vector<ModuleSpec>& modules = resolution.spec.modules;
  Resolved resolved;
  resolved.tokens.resize(modules.size());
  resolved.placement = ResolvePlacement(resolution, decoder);
  const bool has_workload = resolution.is_sound("workload");
  for (std::size_t index = 0; index < modules.size(); ++index) {
    CheckModule(resolution, modules[index], decoder, resolved.placement);
    if (&modules[index] != &decoder && has_workload) {
      resolved.tokens[index] = ResolveTokens(resolution, modules[index]);
    }
  }
  CheckTrained(resolution);
  CheckProjectors(resolution);
  CheckCluster(resolution);
  CheckDeferral(resolution, decoder);
  if (has_workload) {
    ResolveWorkload(resolution, decoder);
    CheckInterleaving(resolution, decoder);
    CheckTokens(resolution, decoder, resolved.tokens);
  }
  return resolved;
}

}  // namespace

plan::Job ResolveJob(Resolution& resolution) {
  ScenarioSpec& spec = resolution.spec;
  CheckPresence(resolution);
  CheckCounts(resolution);
  CheckNames(resolution);
  ResolveTraining(resolution);
  const bool can_relate = CanRelate(resolution);
  if (can_relate) ResolveGraph(resolution);
  const ModuleSpec* decoder = can_relate ? FindDecoder(resolution) : nullptr;
  const bool has_sizes = resolution.is_sound("cluster") && resolution.is_sound("nodes") &&
                         resolution.is_sound("num_gpus");
  Resolved resolved;
  if (decoder != nullptr && decoder->inherits_layout) {
    resolution.Complain(ModulePath(*decoder, "layout"),
                        "`inherit` is for encoders, which take the LLM's layout");
  } else if (decoder != nullptr && has_sizes && ResolveRanks(resolution)) {
    resolved = ResolveAll(resolution, *decoder);
    CheckOtherJobs(resolution);
    resolution.load_other_jobs();
  }
  resolution.diagnostics.ThrowIfAny();
  for (ModuleSpec& module : spec.modules) {
    if (&module == decoder) module.has_projector = false;
  }
  plan::Job job = MakeJob(spec, *decoder, resolved.placement, resolved.tokens);
  if (spec.workload.sample_order == SampleOrder::kBalanced) plan::BalanceSamples(job);
  return job;
}

}  // namespace isthmus::scenarios::internal
