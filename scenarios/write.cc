#include "scenarios/internal/fields.h"
#include "scenarios/internal/recorder.h"
#include "scenarios/internal/yaml_text.h"
#include "scenarios/spec.h"

namespace isthmus::scenarios {
namespace {

using namespace internal;

// The tree of a scenario that says nothing but its framework, with "*" for the items of maps by
// name.
Node DefaultTree(const plan::FrameworkRelease& framework) {
  ScenarioSpec fresh;
  TakeFramework(framework, fresh);
  fresh.modules.push_back(FreshModule(framework));
  fresh.modules.back().name = "*";
  fresh.cluster.node_groups.emplace_back().name = "*";
  Node tree;
  Recorder recorder(tree, Recorder::Keys::kOptional);
  Fields(recorder, fresh);
  if (&framework != &plan::DefaultFramework()) {
    std::erase_if(tree.entries, [](const Node::Entry& entry) { return entry.key == "framework"; });
  }
  return tree;
}

}  // namespace

std::string WriteScenario(const ScenarioSpec& spec) {
  ScenarioSpec copy = spec;  // archives take what they visit by mutable reference
  Node tree;
  Recorder recorder(tree);
  Fields(recorder, copy);
  PruneDefaults(tree, DefaultTree(*spec.framework));
  return PrintYaml(tree, Comments::kNone);
}

}  // namespace isthmus::scenarios
