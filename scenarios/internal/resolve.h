#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "plan/job.h"
#include "profiles/profile.h"
#include "scenarios/internal/diagnostics.h"
#include "scenarios/internal/node.h"
#include "scenarios/scenario.h"
#include "scenarios/spec.h"

namespace isthmus::scenarios::internal {

// What checks of several values work on. Each check is left out where a value it needs could not be
// read: its mistake is in the diagnostics already.
struct Resolution {
  ScenarioSpec& spec;
  const Node& root;  // the merged file, for places
  Diagnostics& diagnostics;
  std::set<std::string> derived;  // paths of values that were filled in
  Purpose purpose = Purpose::kPredict;
  std::function<void()> load_other_jobs;  // once this job's nodes are known
  bool is_other_job = false;

  void Complain(std::string_view path, std::string_view message, std::string hint = {}) {
    diagnostics.AddAt(root, path, message, std::move(hint));
  }
  bool is_sound(std::string_view path) const { return !diagnostics.HasUnder(path); }
  bool is_given(std::string_view path) const {
    const Place place = Locate(root, path);
    return place.is_exact && !place.node->is_null();
  }
};

// "modules.NAME.key"; the module alone without a key.
std::string ModulePath(const ModuleSpec& module, std::string_view key = {});

// The one decoder; null, with a diagnostic, if there is none or several.
const ModuleSpec* FindDecoder(Resolution& resolution);

// Checks `edges`, or makes the default ones.
void ResolveGraph(Resolution& resolution);

// Fills nodes, num_gpus and each layout's dp and num_ranks. False if they can't be found out.
bool ResolveRanks(Resolution& resolution);

// Node groups that the job has nodes in; all of them where on_nodes doesn't say.
std::vector<const topology::NodeGroup*> GroupsOf(const ScenarioSpec& spec);
// The highest node that on_nodes or an other job names; -1 if none does.
int HighestNode(const ScenarioSpec& spec);
// Whether nodes that are named exist and can be had; complains otherwise. Needs the cluster's size.
bool CheckOnNodes(Resolution& resolution);
// GPUs of nodes, node by node.
std::vector<base::DeviceId> GpusOn(const topology::ClusterSpec& cluster,
                                   const std::vector<int>& nodes);
// Complains about other jobs' nodes that don't exist or are taken. Needs num_gpus.
void CheckOtherJobs(Resolution& resolution);

// The half-open range of ranks of a module with a layout of its own.
struct RankRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  friend bool operator==(const RankRange&, const RankRange&) = default;
};
RankRange RangeOf(const ModuleSpec& module);
std::string ToText(RankRange range);  // "0-7"

// Which of the three placements the ranges make; checks that they tile all ranks.
plan::Placement ResolvePlacement(Resolution& resolution, const ModuleSpec& decoder);

// Fills global_batch and num_microbatches.
void ResolveWorkload(Resolution& resolution, const ModuleSpec& decoder);

// Checks a module's dimensions against its layout and settings.
void CheckModule(Resolution& resolution, const ModuleSpec& module, const ModuleSpec& decoder,
                 plan::Placement placement);

// An encoder's tokens of one sample.
struct EncoderTokens {
  std::int64_t tokens_per_sample = 0;              // inside the encoder
  std::int64_t llm_tokens_per_sample = 0;          // at the LLM
  std::int64_t span_tokens = 0;                    // of one image or clip inside the encoder
  std::int64_t llm_span_tokens = 0;                // and at the LLM
  std::vector<std::int32_t> spans_of_sample = {};  // as plan::Module's; the rest is of most
};
EncoderTokens ResolveTokens(Resolution& resolution, const ModuleSpec& module);

// Images or clips of the sample that has most, from valid counts; nothing, with a diagnostic, else.
std::optional<std::int64_t> MostSpans(Resolution& resolution, const SpanCounts& counts,
                                      const std::string& path);
// Draws, or repeats, what each sample of the global batch has, where samples differ. Needs
// global_batch.
void DealSpans(Resolution& resolution, const ModuleSpec& module, EncoderTokens& tokens);
// Words for a module's counts: what the file says of kind `vit` under images_per_sample.
const SpanCounts& CountsOf(const ModuleSpec& module);
const char* CountsKey(const ModuleSpec& module);

// What a report has to say about samples that were moved and about data parallel copies of encoders
// that have nothing to encode.
std::vector<std::string> LaneAssumptions(const plan::Job& job);

// The profile with the values that the scenario's `parameters` replace.
profiles::Profile WithParameters(Resolution& resolution, const profiles::Profile& profile);

// Defaults of the framework's release that the file left as they are and that were chosen after
// seeing end-to-end runs.
std::vector<std::string> FrameworkAssumptions(const Resolution& resolution);

// What a report has to say about the profile: that it is not the cluster's, values of the scenario,
// and those that were chosen after seeing end-to-end runs.
std::vector<std::string> ProfileAssumptions(const Resolution& resolution,
                                            const profiles::Profile& profile);

// Checks that the machine has the kernels that modules ask for, unless nothing is predicted; where
// a module names no attention kernel, the first one that the machine has is taken, in `job` too.
void ResolveKernels(Resolution& resolution, const profiles::Profile& profile, plan::Job& job);

// Layers per stage, in spec and job, where a module asks for the split to be searched.
void SplitLayers(Resolution& resolution, const profiles::Profile& profile, plan::Job& job);

// Deals out what samples have where they differ, and checks what concerns all encoders' tokens
// together.
void CheckTokens(Resolution& resolution, const ModuleSpec& decoder,
                 std::vector<EncoderTokens>& tokens);

// Checks how a real run trains, and fills clip_norm.
void ResolveTraining(Resolution& resolution);

// The job, if no check failed; throws what was found otherwise.
plan::Job ResolveJob(Resolution& resolution);

}  // namespace isthmus::scenarios::internal
