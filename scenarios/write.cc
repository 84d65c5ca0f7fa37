#include "scenarios/internal/fields.h"
#include "scenarios/internal/recorder.h"
#include "scenarios/internal/yaml_text.h"
#include "scenarios/spec.h"

namespace isthmus::scenarios {
namespace {

using namespace internal;

// The tree of a scenario that says nothing, with "*" for the items of maps by name.
Node DefaultTree() {
  ScenarioSpec fresh;
  fresh.modules.emplace_back().name = "*";
  fresh.cluster.node_groups.emplace_back().name = "*";
  Node tree;
  Recorder recorder(tree, Recorder::Keys::kOptional);
  Fields(recorder, fresh);
  return tree;
}

}  // namespace

std::string WriteScenario(const ScenarioSpec& spec) {
  ScenarioSpec copy = spec;  // archives take what they visit by mutable reference
  Node tree;
  Recorder recorder(tree);
  Fields(recorder, copy);
  PruneDefaults(tree, DefaultTree());
  return PrintYaml(tree, Comments::kNone);
}

}  // namespace isthmus::scenarios
