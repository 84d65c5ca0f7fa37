#pragma once

#include "scenarios/internal/archive.h"
#include "scenarios/spec.h"

/// The keys of every struct that files may hold (see archive.h).
namespace isthmus::scenarios::internal {

// Bounds of counts. Generous for anything that could be built, and small enough that products of
// them (bytes, FLOPs) stay far below 2^63.
inline constexpr IntegerRange kDegree = {1, 65'536};
inline constexpr IntegerRange kRankCount = {1, 1'048'576};
inline constexpr IntegerRange kLayers = {1, 4'096};
inline constexpr IntegerRange kWidth = {1, 1'048'576};
inline constexpr IntegerRange kTokens = {1, 16'777'216};
inline constexpr IntegerRange kSamples = {1, 1'048'576};

// How a module's model is written: its keys in place, or the name of its file. Only a spec that is
// being written names files; a spec that was read holds the keys.
void Fields(Archive& archive, ModelSpec& model);
void Fields(Archive& archive, LayoutSpec& layout);
void Fields(Archive& archive, plan::Projector& projector);
void Fields(Archive& archive, plan::ModuleSettings& settings);
void Fields(Archive& archive, SpanCounts& counts);
void Fields(Archive& archive, ModuleSpec& module);
void Fields(Archive& archive, EdgeSpec& edge);
void Fields(Archive& archive, WorkloadSpec& workload);
void Fields(Archive& archive, plan::ScheduleOptions& schedule);
void Fields(Archive& archive, plan::OptimizerOptions& optimizer);
void Fields(Archive& archive, StepSpec& step);
void Fields(Archive& archive, OtherJobSpec& job);
void Fields(Archive& archive, LossScale& scale);
void Fields(Archive& archive, Training& training);
void Fields(Archive& archive, topology::NodeGroup& group);
void Fields(Archive& archive, topology::ClusterSpec& cluster);
void Fields(Archive& archive, ScenarioSpec& scenario);

// Names a release and takes what it decides: of the optimizer, and of a module that says nothing.
void TakeFramework(const plan::FrameworkRelease& framework, ScenarioSpec& scenario);
ModuleSpec FreshModule(const plan::FrameworkRelease& framework);

template <typename T>
void StructField(Archive& archive, std::string_view key, T& value, std::string_view doc) {
  archive.Struct(
      key, [&value](Archive& inner) { Fields(inner, value); }, nullptr, doc);
}

// The items of a vector of structs; `name_of` gives the place of the name, if they have one.
template <typename T>
Archive::Items ItemsOf(std::vector<T>& values, std::string T::*name = nullptr) {
  Archive::Items items;
  for (const T& value : values) items.names.push_back(name != nullptr ? value.*name : "");
  items.add = [&values, name](const std::string& text) {
    values.emplace_back();
    if (name != nullptr) values.back().*name = text;
  };
  items.visit = [&values](std::size_t index, Archive& inner) { Fields(inner, values[index]); };
  items.visit_default = [](Archive& inner) {
    T fresh;
    Fields(inner, fresh);
  };
  return items;
}

}  // namespace isthmus::scenarios::internal
