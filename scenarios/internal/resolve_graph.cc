#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "scenarios/internal/resolve.h"

namespace isthmus::scenarios::internal {
namespace {

using plan::ModuleKind;

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

}  // namespace isthmus::scenarios::internal
