#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "plan/job.h"
#include "plan/model/module.h"
#include "topology/cluster_spec.h"

/// What a scenario file says, key by key, before it is checked and resolved (docs/scenarios.md is
/// the reference of the keys). Programs that make scenarios fill a ScenarioSpec and write it with
/// WriteScenario.
namespace isthmus::scenarios {

/// How a model's dimensions are known.
enum class ModelMark : std::uint8_t { kPublished, kAssumed };

/// A file of scenarios/models/. Absent numbers follow from the others.
struct ModelSpec {
  std::string name;
  std::string source;  ///< where the dimensions come from; of an assumption, its reason
  ModelMark mark = ModelMark::kPublished;
  plan::ModuleKind kind = plan::ModuleKind::kDecoder;
  std::int64_t num_layers = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn_hidden = 0;
  std::int64_t num_heads = 0;
  std::optional<std::int64_t> num_kv_heads;  ///< absent: num_heads
  std::optional<std::int64_t> head_dim;      ///< absent: hidden / num_heads
  bool gated_mlp = false;
  bool rotary = false;
  std::int64_t vocab_size = 0;  ///< decoders
  bool tied_embeddings = false;
  double hidden_dropout = 0.0;
  bool qk_norm = false;
  std::optional<std::int64_t> tokens_per_image;  ///< vit
  std::optional<std::int64_t> tokens_per_clip;   ///< audio
  std::int64_t pixel_shuffle = 1;  ///< vit: this many tokens by this many become one for the LLM
  std::int64_t input_width = 0;    ///< of a patch or an audio frame; 0 leaves the stem out
};

/// How layers are dealt to pipeline stages where `stage_layers` does not say it.
enum class LayerSplit : std::uint8_t {
  kEven,    ///< as even as can be, the first stages take the rest
  kSearch,  ///< the slowest stage gets the least work: plan::BalancedSplit
};

/// A module's degrees. Of dp and num_ranks one may be absent, or both.
struct LayoutSpec {
  std::int64_t tp = 1;
  std::int64_t cp = 1;
  std::int64_t pp = 1;
  std::int64_t vpp = 1;
  std::int64_t ep = 1;
  std::int64_t etp = 1;
  std::optional<std::int64_t> dp;
  std::optional<std::int64_t> num_ranks;
  std::int64_t first_rank = 0;
  plan::AxisOrder order = plan::AxisOrder::kTpCpDpPp;
  LayerSplit split = LayerSplit::kEven;
  std::vector<std::int64_t> stage_layers;
};

/// Images or clips of the samples of a step: of each as many, as many as a list says that repeats
/// over the global batch, or drawn. The same in every step.
struct SpanCounts {
  std::optional<std::int64_t> fixed;
  std::vector<std::int64_t> each;
  std::vector<std::int64_t> uniform;  ///< least and most
  double text_only_fraction = 0.0;   ///< of the samples that would have some: drawn, they have none
  std::optional<std::int64_t> seed;  ///< of what is drawn; absent: the scenario's

  bool is_given() const { return fixed.has_value() || varies(); }
  bool varies() const { return !each.empty() || !uniform.empty(); }
};

/// One module of the graph.
struct ModuleSpec {
  std::string name;
  std::string model_preset;  ///< writing only: names a file of scenarios/models/ instead of `model`
  ModelSpec model;
  bool inherits_layout = false;  ///< `layout: inherit`: homogeneous
  LayoutSpec layout;
  plan::ModuleSettings settings;
  bool has_projector = true;  ///< encoders; `projector: none` is for equal widths
  plan::Projector projector;

  // What an encoder gets of one sample: a number of images or clips, or a share of the sequence.
  std::optional<std::int64_t> tokens_per_image;  ///< replaces the model's
  SpanCounts images_per_sample;
  std::optional<double> vision_fraction;
  std::optional<std::int64_t> tokens_per_clip;
  SpanCounts clips_per_sample;
  std::optional<double> audio_fraction;
};

struct EdgeSpec {
  std::string from;
  std::string to;
};

/// Which sample of the global batch goes to which data parallel copy and microbatch of the LLM.
enum class SampleOrder : std::uint8_t {
  kAsDrawn,   ///< one after the other: copy by copy, microbatch by microbatch
  kBalanced,  ///< so that encoders have near equal work everywhere: plan::BalanceSamples
};

/// Of global_batch and num_microbatches one may be absent.
struct WorkloadSpec {
  std::int64_t sequence_length = 0;
  std::optional<std::int64_t> global_batch;
  std::optional<std::int64_t> num_microbatches;
  std::int64_t microbatch_size = 1;
  /// Samples are packed of documents of so many tokens that don't attend to each other; absent: a
  /// sample is one document.
  std::optional<std::int64_t> document_tokens;
  SampleOrder sample_order = SampleOrder::kAsDrawn;
};

/// What a step's time covers, where a published figure means only a part of it.
enum class StepMetric : std::uint8_t {
  kFull,             ///< from the parameter gather to the last rank's optimizer
  kForwardBackward,  ///< first forward to last backward, gradient reduction included
};

struct StepSpec {
  StepMetric metric = StepMetric::kFull;
  std::int64_t num_steps = 1;
};

/// A job on other nodes of the same cluster, at the same time.
struct OtherJobSpec {
  std::string name;              ///< absent: its scenario's
  std::string scenario;          ///< a shipped scenario's name, or a path
  std::vector<int> nodes;        ///< that it takes, in this order
  std::vector<std::string> set;  ///< `key.path=value`, on top of its scenario
  base::Seconds start_after{0};  ///< the first job's start
};

enum class LearningRateSchedule : std::uint8_t { kConstant, kLinear, kCosine };

/// What the data of a real run are.
enum class TrainingTask : std::uint8_t {
  kRandom,    ///< tokens and inputs drawn at random: nothing to learn
  kCaptions,  ///< drawn shapes and tones, and words for them
};

/// The factor on the loss of an fp16 run, as PyTorch's GradScaler has it: times growth_factor after
/// growth_interval steps without an overflow, times backoff_factor at each overflow.
struct LossScale {
  double initial = 65536.0;
  double growth_factor = 2.0;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
};

/// How a real run trains. A prediction does not depend on it, nor does a program.
struct Training {
  /// The rate grows linearly over the warm-up, then stays, or falls to min_learning_rate at step
  /// `decay_steps` (warm-up included), on a line or half a cosine.
  double learning_rate = 1e-3;
  double min_learning_rate = 0.0;
  std::int64_t warmup_steps = 0;
  LearningRateSchedule schedule = LearningRateSchedule::kConstant;
  std::int64_t decay_steps = 0;             ///< 0 exactly if the rate stays
  std::vector<double> betas = {0.9, 0.95};  ///< Adam's; two of them
  double epsilon = 1e-8;
  double weight_decay = 0.0;  ///< decoupled (AdamW)
  /// Bound of the norm of all gradients; 0 exactly if the optimizer plans no clip.
  double clip_norm = 1.0;
  double initial_std = 0.02;  ///< of initial weights
  LossScale loss_scale;
  TrainingTask task = TrainingTask::kCaptions;
};

/// A whole file, everything it builds on merged in.
struct ScenarioSpec {
  std::string name;
  std::string description;
  std::vector<std::string> assumptions;  ///< what the file's author had to assume
  std::string cluster_preset;            ///< writing only: names a file of scenarios/clusters/
  topology::ClusterSpec cluster;
  std::optional<std::int64_t> nodes;
  std::optional<std::int64_t> num_gpus;
  std::vector<int> on_nodes;  ///< that the job takes, in this order; empty: from the first
  /// The release whose code every module runs; settings that a file doesn't state are its defaults.
  const plan::FrameworkRelease* framework = &plan::DefaultFramework();
  std::string profile;                  ///< absent: the profile of the cluster's GPU
  std::vector<std::string> parameters;  ///< `key=number`: replace the profile's values
  std::int64_t seed = 1;
  WorkloadSpec workload;
  std::vector<ModuleSpec> modules;
  std::vector<EdgeSpec> edges;  ///< absent: every encoder feeds the decoder
  plan::ScheduleOptions schedule;
  plan::OptimizerOptions optimizer;
  plan::Allocator allocator = plan::Allocator::kCaching;
  StepSpec step;
  std::vector<OtherJobSpec> other_jobs;
  Training training;
};

/// `spec` as a scenario file: what equals its default is left out. Loading the text gives `spec`
/// again.
std::string WriteScenario(const ScenarioSpec& spec);

}  // namespace isthmus::scenarios
