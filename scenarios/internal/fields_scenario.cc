#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "scenarios/internal/fields.h"

namespace isthmus::scenarios::internal {
namespace {

using enum Presence;

constexpr IntegerRange kNodeNumber = {0, kRankCount.max - 1};

// `chunk` or a number of layers.
Scalar BlockScalar(int& block_layers) {
  Scalar scalar = Integer(block_layers, kLayers);
  scalar.type = fmt::format("chunk, or {}", scalar.type);
  scalar.parse = [&block_layers, number = std::move(scalar.parse)](const std::string& text,
                                                                   bool is_quoted) -> Failure {
    if (text != "chunk") return number(text, is_quoted);
    block_layers = 0;
    return {};
  };
  scalar.print = [&block_layers] {
    return std::optional(block_layers == 0 ? "chunk" : fmt::format("{}", block_layers));
  };
  return scalar;
}

// Printed only where it is not the default.
Scalar SampleOrderScalar(SampleOrder& order) {
  Scalar scalar = OneOf(
      order, {Means("as_drawn", SampleOrder::kAsDrawn), Means("balanced", SampleOrder::kBalanced)});
  scalar.print = [&order, print = std::move(scalar.print)] {
    return order == SampleOrder::kAsDrawn ? std::nullopt : print();
  };
  return scalar;
}

// Reading it sets what the release decides; the keys behind it that a file states come later.
Scalar FrameworkScalar(ScenarioSpec& scenario) {
  const std::span<const plan::FrameworkRelease> releases = plan::FrameworkReleases();
  std::vector<Word> words;
  for (const plan::FrameworkRelease& release : releases) {
    words.push_back({release.name, static_cast<int>(words.size())});
  }
  return WordScalar(
      [&scenario, releases](int index) {
        TakeFramework(releases[static_cast<std::size_t>(index)], scenario);
      },
      [&scenario, releases] { return static_cast<int>(scenario.framework - releases.data()); },
      std::move(words));
}

Archive::Items ModulesOf(ScenarioSpec& scenario) {
  Archive::Items items = ItemsOf(scenario.modules, &ModuleSpec::name);
  items.add = [&scenario](const std::string& name) {
    scenario.modules.push_back(FreshModule(*scenario.framework));
    scenario.modules.back().name = name;
  };
  return items;
}

}  // namespace

void TakeFramework(const plan::FrameworkRelease& framework, ScenarioSpec& scenario) {
  scenario.framework = &framework;
  scenario.optimizer.overlap_grad_reduce = framework.defaults.overlap_grad_reduce;
  scenario.optimizer.overlap_param_gather = framework.defaults.overlap_param_gather;
}

ModuleSpec FreshModule(const plan::FrameworkRelease& framework) {
  ModuleSpec module;
  module.settings = plan::DefaultSettings(framework);
  return module;
}

void Fields(Archive& archive, EdgeSpec& edge) {
  archive.Value("from", TextScalar(edge.from), kRequired, "the module whose output flows");
  archive.Value("to", TextScalar(edge.to), kRequired, "the module that takes it");
}

void Fields(Archive& archive, WorkloadSpec& workload) {
  archive.Value("sequence_length", Integer(workload.sequence_length, kTokens), kRequired,
                "LLM tokens per sample, those of images and clips included");
  archive.Value("global_batch", Integer(workload.global_batch, kSamples), kOptional,
                "samples per step; absent: from num_microbatches");
  archive.Value("num_microbatches", Integer(workload.num_microbatches, kSamples), kOptional,
                "LLM microbatches per step and data parallel copy; absent: from global_batch");
  archive.Value("microbatch_size", Integer(workload.microbatch_size, kSamples), kOptional,
                "samples per LLM microbatch");
  archive.Value("document_tokens", Integer(workload.document_tokens, kTokens), kOptional,
                "tokens of the documents that a sample is packed of: attention of the LLM stays "
                "within one; absent: a sample is one document");
  archive.Value("sample_order", SampleOrderScalar(workload.sample_order), kOptional,
                "which samples go to which data parallel copy and microbatch of the LLM; absent: "
                "as_drawn, one after the other; balanced: so that each has near equal work for the "
                "encoders whose samples differ (by their FLOP)");
}

void Fields(Archive& archive, plan::ScheduleOptions& schedule) {
  int kind = 0;
  archive.Value("kind",
                OneOf(kind, {Means("1f1b", 0), Later("gpipe", "all forwards before all backwards"),
                             Later("zero_bubble", "backward split into input and weight parts"),
                             Later("dualpipe", "two streams of microbatches"),
                             Later("pipedream", "asynchronous steps")}),
                kOptional,
                "order of forwards and backwards in the LLM's pipeline; 1f1b interleaves where "
                "layout.vpp is more than 1");
  archive.Value("block", BlockScalar(schedule.block_layers), kOptional,
                "layers per compute op; chunk: all layers of a stage in one");
  archive.Value(
      "defer_embedding_wgrad", Integer(schedule.defer_embedding_wgrad, {0, 1'000'000}), kOptional,
      "microbatches whose weight gradient of the LM head waits for the cool-down, when the "
      "last stage idles; 0: none");
}

void Fields(Archive& archive, plan::OptimizerOptions& optimizer) {
  int sharding = 1;
  archive.Value(
      "sharding",
      OneOf(sharding, {Means("zero1", 1), Later("none", "every copy holds all state"),
                       Later("zero2", "sharded gradients"), Later("zero3", "sharded parameters")}),
      kOptional, "what data parallel ranks share out: zero1 is the optimizer state");
  archive.Value("overlap_grad_reduce", BoolScalar(optimizer.overlap_grad_reduce), kOptional,
                "gradient buckets are reduced while the last microbatch's backward runs");
  archive.Value("overlap_param_gather", BoolScalar(optimizer.overlap_param_gather), kOptional,
                "parameters are gathered while the first microbatch's forward runs");
  archive.Value("bucket_parameters", Integer(optimizer.bucket_parameters, {0, 1'000'000'000'000}),
                kOptional,
                "parameters per gradient bucket; 0: max(40 million, 1 million times dp)");
  archive.Value("clip_gradients", BoolScalar(optimizer.clip_gradients), kOptional,
                "the norm over all modules is computed and gradients are scaled by it");
}

void Fields(Archive& archive, StepSpec& step) {
  archive.Value("metric",
                OneOf(step.metric, {Means("full", StepMetric::kFull),
                                    Means("forward_backward", StepMetric::kForwardBackward)}),
                kOptional, "what the step time covers");
  archive.Value("num_steps", Integer(step.num_steps, {1, 1'000}), kOptional,
                "steps that are planned one after the other");
}

void Fields(Archive& archive, OtherJobSpec& job) {
  Scalar scenario = TextScalar(job.scenario);
  scenario.type = "name of a shipped scenario, or a path";
  archive.Value("scenario", scenario, kRequired,
                "what it runs; its `cluster` and `nodes` don't count");
  archive.Value("nodes", NumberListScalar(job.nodes, kNodeNumber), kRequired,
                "nodes of the cluster that it takes, in this order");
  archive.Values(
      "set", job.set.size(), [&job](std::size_t size) { job.set.resize(size); },
      [&job](std::size_t index) { return TextScalar(job.set[index]); },
      "what is put on top of its scenario, as with --set: [workload.global_batch=64]");
  archive.Value("start_after", TimeScalar(job.start_after), kOptional,
                "when it begins, counted from this job's first step");
  archive.Value("name", TextScalar(job.name), kOptional,
                "name in reports; absent: that of its scenario");
}

void Fields(Archive& archive, ScenarioSpec& scenario) {
  archive.Value("name", TextScalar(scenario.name), kOptional,
                "name in reports; absent: the file's name");
  archive.Value("description", TextScalar(scenario.description), kOptional, "for readers");
  archive.Values(
      "assumptions", scenario.assumptions.size(),
      [&scenario](std::size_t size) { scenario.assumptions.resize(size); },
      [&scenario](std::size_t index) { return TextScalar(scenario.assumptions[index]); },
      "what the author had to assume; listed in every report");
  Scalar preset = TextScalar(scenario.cluster_preset);
  preset.type = "name of a file in scenarios/clusters/";
  archive.StructOr(
      "cluster", preset, scenario.cluster_preset.empty(),
      [&scenario](Archive& inner) { Fields(inner, scenario.cluster); },
      "the machine: a name, its keys in place, or `extends: name` and changed keys");
  archive.Value("nodes", Integer(scenario.nodes, kRankCount), kOptional,
                "nodes of a cluster with one node group; absent: as many as num_gpus needs");
  archive.Value("num_gpus", Integer(scenario.num_gpus, kRankCount), kOptional,
                "GPUs that the job uses, from the first; absent: all of the nodes");
  archive.Value("on_nodes", NumberListScalar(scenario.on_nodes, kNodeNumber), kOptional,
                "nodes that the job takes, in this order; absent: from the first");
  Scalar profile = TextScalar(scenario.profile);
  profile.type = "name of a file in scenarios/gpus/ or scenarios/profiles/, or a path";
  archive.Value("profile", profile, kOptional,
                "what the machine was measured to do; absent: the one of the cluster's GPU; "
                "`isthmus calibrate` writes them");
  archive.Values(
      "parameters", scenario.parameters.size(),
      [&scenario](std::size_t size) { scenario.parameters.resize(size); },
      [&scenario](std::size_t index) { return TextScalar(scenario.parameters[index]); },
      "values that replace the profile's, each `key=number` in the profile's unit: "
      "[clock.bf16.ratio=0.85]; `--set parameters.clock.bf16.ratio=0.85` adds one");
  archive.Value("framework", FrameworkScalar(scenario), kOptional,
                "the release whose code runs the modules: its kernels, the tensors it keeps, and "
                "the default of every setting it decides");
  archive.Value("seed", Integer(scenario.seed, {0, 1'000'000'000'000}), kOptional,
                "of everything that is drawn at random");
  StructField(archive, "workload", scenario.workload, "the data of a step");
  archive.Named("modules", ModulesOf(scenario), "module",
                "the modules of the graph by name: one decoder and any number of encoders");
  archive.List("edges", ItemsOf(scenario.edges),
               "who feeds whom; absent: every encoder feeds the decoder");
  StructField(archive, "schedule", scenario.schedule, "order of work");
  StructField(archive, "optimizer", scenario.optimizer, "gradients, parameters, optimizer state");
  archive.Value("allocator",
                OneOf(scenario.allocator,
                      {Means("caching", plan::Allocator::kCaching),
                       Means("eager_streams", plan::Allocator::kEagerStreams),
                       Means("expandable_segments", plan::Allocator::kExpandableSegments)}),
                kOptional,
                "how device memory is reserved: PyTorch's segments, the same under eager code on "
                "several streams, or segments that grow");
  StructField(archive, "step", scenario.step, "what is simulated");
  archive.List("other_jobs", ItemsOf(scenario.other_jobs),
               "jobs on other nodes of the cluster, which run again and again beside this one");
  StructField(archive, "training", scenario.training,
              "how `isthmus run` trains; nothing else reads it");
}

}  // namespace isthmus::scenarios::internal
