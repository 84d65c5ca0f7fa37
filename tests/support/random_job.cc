#include "tests/support/random_job.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "plan/build/balance_samples.h"
#include "plan/schedule/interleaved.h"
#include "tests/support/model_catalogue.h"

namespace isthmus::tests {
namespace {

using plan::AxisOrder;
using plan::Job;
using plan::Layout;
using plan::Module;
using plan::Placement;

// Every tp up to 8 divides 24 heads; every 2·cp·tp that LayoutsOf lets through divides the tokens.
constexpr std::int64_t kHeads = 24;
constexpr std::int64_t kSpanTokens = 96;
constexpr std::int64_t kSequenceLength = 1536;

/// All layouts of `num_ranks` ranks that heads, tokens and layers of a small module allow.
std::vector<Layout> LayoutsOf(int num_ranks, int num_layers, int most_pp, std::int64_t most_dp) {
  std::vector<Layout> layouts;
  for (const int tp : {1, 2, 3, 4, 6, 8}) {
    for (const int cp : {1, 2, 4}) {
      if (kSpanTokens % (std::int64_t{2} * cp * tp) != 0) continue;
      for (int pp = 1; pp <= std::min(num_layers, most_pp); ++pp) {
        if (num_ranks % (tp * cp * pp) != 0) continue;
        const int dp = num_ranks / (tp * cp * pp);
        if (dp <= most_dp) layouts.push_back({.tp = tp, .cp = cp, .pp = pp, .dp = dp});
      }
    }
  }
  return layouts;
}

class Generator {
 public:
  Generator(std::uint64_t seed, const RandomJobOptions& options)
      : random_(seed, "job"), options_(options) {
    job_.name = fmt::format("random-{}", seed);
  }

  Job Make() {
    job_.placement = options_.placement.value_or(
        Pick({Placement::kHomogeneous, Placement::kColocated, Placement::kNonColocated}));
    job_.num_steps = Between(1, options_.max_steps);
    num_encoders_ = Between(job_.placement == Placement::kHomogeneous ? 0 : 1, 2);
    if (job_.placement == Placement::kNonColocated) {
      num_encoders_ = std::min(num_encoders_, options_.max_ranks - 1);
    }
    llm_ = RandomLlm();
    for (int encoder = 0; encoder < num_encoders_; ++encoder) {
      encoders_.push_back(RandomEncoder(encoder));
    }
    LayOut();
    Assemble();
    if (options_.uneven_samples) MakeUneven();
    return std::move(job_);
  }

 private:
  int Between(int low, int high) { return static_cast<int>(random_.UniformInt(low, high)); }
  bool Chance(double probability) { return random_.Chance(probability); }
  template <typename T>
  T Pick(std::initializer_list<T> items) {
    return random_.Pick(std::span<const T>(items.begin(), items.size()));
  }

  void RandomSettings(Module& module) {
    plan::ModuleSettings& settings = module.settings;
    settings.sequence_parallel = Chance(0.7);
    settings.tp_overlap =
        Pick({plan::TpOverlap::kNone, plan::TpOverlap::kBulk, plan::TpOverlap::kUserBuffers});
    settings.recompute = Pick({plan::Recompute::kNone, plan::Recompute::kNone,
                               plan::Recompute::kSelective, plan::Recompute::kFull});
    if (settings.recompute == plan::Recompute::kFull && Chance(0.3)) settings.recompute_layers = 1;
    settings.precision = Chance(0.15) ? plan::DType::kFp16 : plan::DType::kBf16;
    settings.gradient_dtype = Chance(0.2) ? plan::DType::kBf16 : plan::DType::kFp32;
  }

  Module RandomLlm() {
    const int layers = Between(2, 8);
    Module llm = Chance(0.5) ? Gpt("llm", layers, kHeads * 32, kHeads, 32000)
                             : Llama("llm", layers, kHeads * 128, kHeads * 256, kHeads, kHeads);
    llm.transformer.max_positions = kSequenceLength;
    llm.transformer.tied_embeddings = Chance(0.4);
    RandomSettings(llm);
    llm.settings.frozen = Chance(0.15);
    return llm;
  }

  Module RandomEncoder(int index) {
    Module encoder = Encoder(index == 0 ? "vision" : "sound", Between(2, 6), kHeads * 16, kHeads);
    encoder.kind = index == 0 ? plan::ModuleKind::kVit : plan::ModuleKind::kAudio;
    RandomSettings(encoder);
    encoder.settings.frozen = Chance(0.25);
    encoder.input_width = Chance(0.8) ? 588 : 0;
    encoder.span_tokens = kSpanTokens;
    encoder.transformer.max_positions = kSpanTokens;
    encoder.tokens_per_sample = kSpanTokens * Between(1, 6);
    // Pixel shuffle: a quarter of the tokens, four times as wide.
    const int thinned = encoder.kind == plan::ModuleKind::kVit && Chance(0.3) ? 4 : 1;
    encoder.llm_tokens_per_sample = encoder.tokens_per_sample / thinned;
    encoder.projector = plan::Projector{.num_layers = Between(1, 2), .frozen = Chance(0.15)};
    if (index == 0 && Chance(0.3)) encoder.projector->place = plan::Projector::Place::kWithLlm;
    if (options_.absent_backward && Chance(0.1)) {
      encoder.settings.backward = plan::BackwardMode::kAbsent;
    }
    return encoder;
  }

  /// Any layout of `num_ranks` ranks for the module: axis order and uneven stages included.
  Layout RandomLayout(Module& module, int num_ranks, int most_pp, std::int64_t most_dp) {
    const std::vector<Layout> layouts =
        LayoutsOf(num_ranks, module.transformer.num_layers, most_pp, most_dp);
    if (layouts.empty()) {  // a prime number of ranks: stages with a layer each
      module.transformer.num_layers = num_ranks;
      return {.pp = num_ranks};
    }
    Layout layout = random_.Pick(std::span<const Layout>(layouts));
    layout.order = Pick({AxisOrder::kTpCpDpPp, AxisOrder::kTpCpPpDp});
    const int layers = module.transformer.num_layers;
    if (layout.pp > 1 && layers > layout.pp && Chance(0.3)) {
      layout.stage_layers.assign(static_cast<std::size_t>(layout.pp), 1);
      layout.stage_layers[static_cast<std::size_t>(Between(0, layout.pp - 1))] +=
          layers - layout.pp;
    }
    module.settings.optimizer_instances =
        layout.dp % 2 == 0 && Chance(0.25) ? Pick({2, layout.dp}) : 1;
    return layout;
  }

  void SetWorkload(const Layout& llm) {
    job_.workload.sequence_length = kSequenceLength;
    job_.workload.microbatch_size = Between(1, 2);
    job_.workload.global_batch = job_.workload.microbatch_size * llm.dp * Between(1, 6);
  }

  /// The most dp of an encoder whose lanes all have an image or clip.
  std::int64_t MostDp(const Module& encoder, const Layout& llm) const {
    const std::int64_t samples = job_.placement == Placement::kColocated
                                     ? job_.workload.global_batch
                                     : job_.workload.microbatch_size * llm.dp;
    return samples * (encoder.tokens_per_sample / encoder.span_tokens);
  }

  /// A number of ranks that a colocated encoder without stages can have in at least one way.
  int RandomRanks(int low) {
    while (true) {
      const int ranks = Between(low, options_.max_ranks);
      if (job_.placement != Placement::kColocated || ranks == low) return ranks;
      if (!LayoutsOf(ranks, 2, 1, 8).empty()) return ranks;
    }
  }

  void LayOut() {
    const bool apart = job_.placement == Placement::kNonColocated;
    job_.num_ranks = RandomRanks(std::max(options_.min_ranks, apart ? 1 + num_encoders_ : 1));
    std::vector<int> ranks(static_cast<std::size_t>(num_encoders_), job_.num_ranks);
    int llm_ranks = job_.num_ranks;
    for (std::size_t encoder = 0; apart && encoder < ranks.size(); ++encoder) {
      const int others = static_cast<int>(ranks.size() - encoder);  // the LLM among them
      ranks[encoder] = Between(1, std::max(1, std::min(llm_ranks - others, job_.num_ranks / 2)));
      llm_ranks -= ranks[encoder];
    }
    llm_.layout = RandomLayout(llm_, llm_ranks, 8, 72);
    SetWorkload(*llm_.layout);
    const bool llm_first = Chance(0.3);
    int next = llm_first ? llm_ranks : 0;
    if (apart && !llm_first) llm_.layout->first_rank = job_.num_ranks - llm_ranks;
    for (std::size_t encoder = 0; encoder < encoders_.size(); ++encoder) {
      Module& module = encoders_[encoder];
      if (job_.placement == Placement::kHomogeneous) continue;
      // Not more lanes than images, where all have as many: a bigger batch makes room for them.
      while (LayoutsOf(ranks[encoder], 2, 1, MostDp(module, *llm_.layout)).empty() && !apart) {
        job_.workload.global_batch += job_.workload.microbatch_size * llm_.layout->dp;
      }
      module.layout =
          RandomLayout(module, ranks[encoder], apart ? 4 : 1, MostDp(module, *llm_.layout));
      if (apart) module.layout->first_rank = next;
      next += ranks[encoder];
    }
  }

  /// Chunks for the LLM where its schedule may have them.
  void Interleave() {
    Layout& layout = *llm_.layout;
    const std::int64_t microbatches =
        job_.workload.global_batch / (job_.workload.microbatch_size * layout.dp);
    if (job_.placement == Placement::kNonColocated || layout.pp == 1 || Chance(0.3)) return;
    const int vpp = Between(2, 3);
    if (!plan::CanInterleave(layout.pp, vpp, static_cast<int>(microbatches))) return;
    layout.vpp = vpp;
    const int stages = layout.pp * vpp;
    const bool ends_alone = stages > 2 && Chance(0.2);  // embedding and head without a layer
    llm_.transformer.num_layers =
        ends_alone ? stages - 2 : std::max(llm_.transformer.num_layers, stages);
    if (layout.stage_layers.empty()) return;
    layout.stage_layers.clear();
    if (ends_alone) return;
    layout.stage_layers.assign(static_cast<std::size_t>(stages), 1);
    layout.stage_layers[static_cast<std::size_t>(Between(0, stages - 1))] +=
        llm_.transformer.num_layers - stages;
  }

  void FixSettings() {
    for (Module& module : encoders_) {
      module.settings.offload_parameters = job_.placement == Placement::kColocated && Chance(0.3);
      if (!module.layout) {
        const int dp = llm_.layout->dp;
        module.settings.optimizer_instances = dp % 2 == 0 && Chance(0.25) ? 2 : 1;
      }
    }
    const bool trains = std::any_of(encoders_.begin(), encoders_.end(), [](const Module& module) {
      return module.settings.backward == plan::BackwardMode::kReal &&
             (!module.settings.frozen || !module.projector->frozen);
    });
    if (!trains) llm_.settings.frozen = false;
  }

  void Assemble() {
    Interleave();
    FixSettings();
    const bool llm_first = Chance(0.25);
    if (llm_first) job_.modules.push_back(llm_);
    for (const Module& module : encoders_) {
      job_.modules.push_back(module);
      const int at = static_cast<int>(job_.modules.size()) - 1;
      job_.edges.push_back({at, llm_first ? 0 : num_encoders_});
    }
    if (!llm_first) job_.modules.push_back(llm_);
    job_.schedule.block_layers = Pick({0, 0, 1, 2});
    if (llm_.layout->pp > 1 && Chance(0.3)) job_.schedule.defer_embedding_wgrad = Between(1, 6);
    job_.optimizer = {.overlap_grad_reduce = Chance(0.6),
                      .overlap_param_gather = Chance(0.6),
                      .bucket_parameters = Chance(0.7) ? 3'000'000 : 0,
                      .clip_gradients = Chance(0.8)};
  }

  /// Text-only samples and, since counts are small, whole text-only microbatches and lanes.
  void MakeUneven() {
    for (Module& module : job_.modules) {
      if (module.kind == plan::ModuleKind::kDecoder) continue;
      const auto most = static_cast<std::int32_t>(module.tokens_per_sample / module.span_tokens);
      const double text_only = Chance(0.5) ? 0.6 : 0.2;
      for (std::int64_t sample = 0; sample < job_.workload.global_batch; ++sample) {
        module.spans_of_sample.push_back(Chance(text_only) ? 0 : Between(0, most));
      }
      // Some sample has what the module says a sample has most.
      const int sample = Between(0, static_cast<int>(job_.workload.global_batch) - 1);
      module.spans_of_sample[static_cast<std::size_t>(sample)] = most;
    }
    if (Chance(0.3)) plan::BalanceSamples(job_);
  }

  base::RandomStream random_;
  RandomJobOptions options_;
  Job job_;
  Module llm_;
  std::vector<Module> encoders_;
  int num_encoders_ = 0;
};

}  // namespace

Job RandomJob(std::uint64_t seed, const RandomJobOptions& options) {
  return Generator(seed, options).Make();
}

std::string Summary(const Job& job) {
  std::string text =
      fmt::format("{} {} on {} ranks, batch {} x {}", job.name, plan::ToText(job.placement),
                  job.num_ranks, job.workload.global_batch, job.workload.microbatch_size);
  for (const Module& module : job.modules) {
    const plan::ModuleSettings& settings = module.settings;
    text += fmt::format(" | {} {} layers {}", module.name, module.transformer.num_layers,
                        module.layout ? plan::ToText(*module.layout) : std::string("inherited"));
    if (module.layout && module.layout->order == AxisOrder::kTpCpPpDp) text += " pp before dp";
    if (module.layout && module.layout->first_rank > 0) {
      text += fmt::format(" from {}", module.layout->first_rank);
    }
    if (settings.frozen) text += " frozen";
    if (settings.backward == plan::BackwardMode::kAbsent) text += " no backward";
    if (settings.recompute == plan::Recompute::kFull) {
      text += fmt::format(" recompute {}", settings.recompute_layers);
    }
    if (settings.offload_parameters) text += " offload";
    if (settings.optimizer_instances > 1) {
      text += fmt::format(" instances {}", settings.optimizer_instances);
    }
    if (!module.projector) continue;
    text += module.projector->place == plan::Projector::Place::kWithLlm ? " projector with llm"
                                                                        : " projector";
    if (module.projector->frozen) text += " frozen";
  }
  return text;
}

}  // namespace isthmus::tests
