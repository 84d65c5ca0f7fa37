#include "scenarios/internal/resolve.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "topology/cluster.h"

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

// Whether a walk along edges from `start` comes back to it.
bool IsOnCycle(const std::vector<EdgeSpec>& edges, const std::string& start) {
  std::vector<std::string> reached = {start};
  for (std::size_t next = 0; next < reached.size(); ++next) {
    for (const EdgeSpec& edge : edges) {
      if (edge.from != reached[next]) continue;
      if (edge.to == start) return true;
      if (std::ranges::find(reached, edge.to) == reached.end()) reached.push_back(edge.to);
    }
  }
  return false;
}

// What an edge may join today. `path` is the edge's.
void CheckEdge(Resolution& resolution, const EdgeSpec& edge, const std::string& path) {
  const std::vector<ModuleSpec>& modules = resolution.spec.modules;
  std::vector<std::string> names;
  for (const ModuleSpec& module : modules) names.push_back(module.name);
  for (const auto& [key, name] : {std::pair("from", edge.from), std::pair("to", edge.to)}) {
    if (IndexOf(modules, name) >= 0) continue;
    resolution.Complain(JoinPath(path, key), fmt::format("there is no module named {}", name),
                        NamesHint(name, names));
    return;
  }
  if (IsOnCycle(resolution.spec.edges, edge.from) && IsOnCycle(resolution.spec.edges, edge.to)) {
    resolution.Complain(path, fmt::format("{} -> {} is part of a cycle; modules form a graph "
                                          "without cycles",
                                          edge.from, edge.to));
    return;
  }
  const ModuleSpec& from = modules[static_cast<std::size_t>(IndexOf(modules, edge.from))];
  const ModuleSpec& to = modules[static_cast<std::size_t>(IndexOf(modules, edge.to))];
  if (from.model.kind == ModuleKind::kDecoder) {
    resolution.Complain(path,
                        fmt::format("{} -> {}: a module behind the LLM is known but not built "
                                    "yet",
                                    edge.from, edge.to));
  } else if (to.model.kind != ModuleKind::kDecoder) {
    resolution.Complain(
        path,
        fmt::format("{} -> {}: a chain of encoders is known but not built yet", edge.from, edge.to),
        "let every encoder feed the decoder");
  }
}

plan::Layout ToLayout(const LayoutSpec& spec) {
  plan::Layout layout;
  layout.tp = static_cast<int>(spec.tp);
  layout.cp = static_cast<int>(spec.cp);
  layout.pp = static_cast<int>(spec.pp);
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
  return transformer;
}

plan::Module ToModule(const ModuleSpec& spec, const EncoderTokens& tokens,
                      std::int64_t llm_hidden) {
  plan::Module module;
  module.name = spec.name;
  module.kind = spec.model.kind;
  module.transformer = ToTransformer(spec.model);
  module.settings = spec.settings;
  if (!spec.inherits_layout) module.layout = ToLayout(spec.layout);
  if (spec.model.kind == ModuleKind::kDecoder) return module;
  if (spec.has_projector) {
    module.projector = spec.projector;
    if (module.projector->hidden == 0) module.projector->hidden = llm_hidden;
  }
  module.tokens_per_sample = tokens.tokens_per_sample;
  module.llm_tokens_per_sample = tokens.llm_tokens_per_sample;
  module.span_tokens = tokens.span_tokens;
  module.input_width = spec.model.input_width;
  return module;
}

plan::Job MakeJob(const ScenarioSpec& spec, const ModuleSpec& decoder, plan::Placement placement,
                  const std::vector<EncoderTokens>& tokens) {
  plan::Job job;
  job.name = spec.name;
  for (std::size_t index = 0; index < spec.modules.size(); ++index) {
    job.modules.push_back(ToModule(spec.modules[index], tokens[index], decoder.model.hidden));
  }
  for (const EdgeSpec& edge : spec.edges) {
    job.edges.push_back({IndexOf(spec.modules, edge.from), IndexOf(spec.modules, edge.to)});
  }
  job.workload = {spec.workload.sequence_length, *spec.workload.global_batch,
                  spec.workload.microbatch_size};
  job.schedule = spec.schedule;
  job.optimizer = spec.optimizer;
  job.placement = placement;
  job.num_ranks = static_cast<int>(*spec.num_gpus);
  job.num_steps = static_cast<int>(spec.step.num_steps);
  return job;
}

// topology knows best what can be built; its mistakes are put at the cluster's place.
void CheckCluster(Resolution& resolution) {
  try {
    const topology::Cluster cluster(resolution.spec.cluster);
    static_cast<void>(cluster);
  } catch (const base::Error& error) {
    const Place place = Locate(resolution.root, "cluster");
    resolution.diagnostics.AddError(place.key_origin, {}, error.what());
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

}  // namespace

const ModuleSpec* FindDecoder(Resolution& resolution) {
  const ModuleSpec* decoder = nullptr;
  for (const ModuleSpec& module : resolution.spec.modules) {
    if (module.model.kind != ModuleKind::kDecoder) continue;
    if (decoder != nullptr) {
      resolution.Complain(
          ModulePath(module),
          fmt::format("a second decoder beside {}: two language models are known but "
                      "not built yet",
                      decoder->name),
          "keep one");
      return nullptr;
    }
    decoder = &module;
  }
  if (decoder == nullptr) {
    resolution.Complain("modules",
                        resolution.spec.modules.empty() ? "is missing" : "there is no decoder",
                        "one module's model must be a decoder");
  }
  return decoder;
}

void ResolveGraph(Resolution& resolution) {
  ScenarioSpec& spec = resolution.spec;
  if (!resolution.is_given("edges")) {
    for (const ModuleSpec& module : spec.modules) {
      if (module.model.kind == ModuleKind::kDecoder) continue;
      for (const ModuleSpec& decoder : spec.modules) {
        if (decoder.model.kind != ModuleKind::kDecoder) continue;
        spec.edges.push_back({module.name, decoder.name});
      }
    }
    resolution.derived.insert("edges");
    return;
  }
  for (std::size_t index = 0; index < spec.edges.size(); ++index) {
    const EdgeSpec& edge = spec.edges[index];
    const std::string path = fmt::format("edges.{}", index);
    CheckEdge(resolution, edge, path);
    for (std::size_t earlier = 0; earlier < index; ++earlier) {
      if (spec.edges[earlier].from != edge.from || spec.edges[earlier].to != edge.to) continue;
      resolution.Complain(path, fmt::format("{} -> {} is here twice", edge.from, edge.to));
    }
  }
  for (const ModuleSpec& module : spec.modules) {
    if (module.model.kind == ModuleKind::kDecoder) continue;
    if (std::ranges::find(spec.edges, module.name, &EdgeSpec::from) != spec.edges.end()) continue;
    resolution.Complain(ModulePath(module), "feeds no other module", "add it to `edges`");
  }
}

plan::Job ResolveJob(Resolution& resolution) {
  Diagnostics& diagnostics = resolution.diagnostics;
  ScenarioSpec& spec = resolution.spec;
  for (const ModuleSpec& module : spec.modules) {
    const std::string path = ModulePath(module, "model");
    if (!resolution.is_given(path) && resolution.is_sound(path)) {
      resolution.Complain(path, "is missing", "name a file of scenarios/models/, or give its keys");
    }
  }
  if (!resolution.is_given("cluster") && resolution.is_sound("cluster")) {
    resolution.Complain("cluster", "is missing", "name a file of scenarios/clusters/");
  }
  CheckCounts(resolution);
  CheckNames(resolution);
  const bool can_relate = CanRelate(resolution);
  if (can_relate) ResolveGraph(resolution);
  const ModuleSpec* decoder = can_relate ? FindDecoder(resolution) : nullptr;
  std::vector<EncoderTokens> tokens(spec.modules.size());
  plan::Placement placement = plan::Placement::kHomogeneous;
  const bool has_sizes = resolution.is_sound("cluster") && resolution.is_sound("nodes") &&
                         resolution.is_sound("num_gpus");
  if (decoder != nullptr && decoder->inherits_layout) {
    resolution.Complain(ModulePath(*decoder, "layout"),
                        "`inherit` is for encoders, which take the LLM's layout");
  } else if (decoder != nullptr && has_sizes && ResolveRanks(resolution)) {
    placement = ResolvePlacement(resolution, *decoder);
    for (std::size_t index = 0; index < spec.modules.size(); ++index) {
      const ModuleSpec& module = spec.modules[index];
      CheckModule(resolution, module, *decoder, placement);
      if (&module != decoder && resolution.is_sound("workload")) {
        tokens[index] = ResolveTokens(resolution, module);
      }
    }
    CheckTrained(resolution);
    CheckCluster(resolution);
    if (resolution.is_sound("workload")) {
      ResolveWorkload(resolution, *decoder);
      CheckTokens(resolution, *decoder, placement, tokens);
    }
  }
  diagnostics.ThrowIfAny();
  for (ModuleSpec& module : spec.modules) {
    if (&module == decoder) module.has_projector = false;
  }
  return MakeJob(spec, *decoder, placement, tokens);
}

}  // namespace isthmus::scenarios::internal
