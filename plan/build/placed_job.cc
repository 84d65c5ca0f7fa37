#include "plan/build/placed_job.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "base/error.h"
#include "plan/schedule/graph_aware.h"

namespace isthmus::plan {
namespace {

const Module& ModuleOf(const Job& job, int module) {
  return job.modules[static_cast<std::size_t>(module)];
}

/// First layer of every virtual stage, then the end.
std::vector<int> SplitLayers(int num_layers, int num_stages, const std::vector<int>& given) {
  const bool short_ends = HasShortEnds(num_layers, num_stages);
  std::vector<int> first{0};
  for (int stage = 0; stage < num_stages; ++stage) {
    int even = num_layers / num_stages + (stage < num_layers % num_stages ? 1 : 0);
    if (short_ends) {
      const bool is_end = stage == 0 || stage + 1 == num_stages;
      even = (num_layers + 2) / num_stages - (is_end ? 1 : 0);
    }
    first.push_back(first.back() + (given.empty() ? even : given[static_cast<std::size_t>(stage)]));
  }
  ISTHMUS_CHECK(first.back() == num_layers, "stage layers sum to {}, module has {}", first.back(),
                num_layers);
  return first;
}

bool EncoderTrains(const Module& encoder) {
  if (!encoder.settings.frozen) return true;
  const auto& projector = encoder.projector;
  return projector && projector->place == Projector::Place::kWithEncoder && !projector->frozen;
}

/// The projector that runs with the LLM, if any.
const Projector* LlmProjector(const Job& job, int* encoder_of_projector) {
  const Projector* found = nullptr;
  for (const Edge& edge : job.edges) {
    const auto& projector = ModuleOf(job, edge.from).projector;
    if (!projector || projector->place != Projector::Place::kWithLlm) continue;
    if (found != nullptr) {
      throw base::Error(
          "more than one projector with: llm is known but not built yet; use with: encoder");
    }
    found = &*projector;
    *encoder_of_projector = edge.from;
  }
  return found;
}

/// Encoder width at the boundary before its projector: pixel shuffle widens as it thins out tokens.
std::int64_t ShuffledWidth(const Module& encoder) {
  return encoder.transformer.hidden * encoder.tokens_per_sample /
         std::max<std::int64_t>(encoder.llm_tokens_per_sample, 1);
}

std::int64_t BoundaryWidth(const Job& job, int encoder) {
  const Module& module = ModuleOf(job, encoder);
  const bool with_encoder =
      module.projector && module.projector->place == Projector::Place::kWithEncoder;
  return with_encoder ? ModuleOf(job, job.decoder()).transformer.hidden : ShuffledWidth(module);
}

StageRequest RequestStage(const Job& job, int module_index, const PlacedModule& placed, int stage,
                          bool trained_upstream) {
  const Module& module = ModuleOf(job, module_index);
  const bool decoder = module.kind == ModuleKind::kDecoder;
  const int num_stages = static_cast<int>(placed.first_layer.size()) - 1;
  const auto at = static_cast<std::size_t>(stage);
  StageRequest request{.module = &module,
                       .first_layer = placed.first_layer[at],
                       .trained_upstream = trained_upstream,
                       .tp = placed.grid.size(Axis::kTp),
                       .block_layers = job.schedule.block_layers,
                       .head_apart = job.schedule.defer_embedding_wgrad > 0};
  request.block.num_layers = placed.first_layer[at + 1] - placed.first_layer[at];
  request.block.stem = stage == 0 && (decoder || module.input_width > 0);
  request.block.head = decoder && stage + 1 == num_stages;
  int encoder = -1;
  if (decoder && stage == 0) {
    request.projector = LlmProjector(job, &encoder);
  } else if (!decoder && stage + 1 == num_stages && module.projector &&
             module.projector->place == Projector::Place::kWithEncoder) {
    request.projector = &*module.projector;
    encoder = module_index;
  }
  if (request.projector != nullptr) {
    request.block.projector = true;
    request.projector_in = ShuffledWidth(ModuleOf(job, encoder));
    request.projector_out = ModuleOf(job, job.decoder()).transformer.hidden;
  }
  const std::int64_t dp = std::int64_t{placed.grid.size(kDp)} * placed.grid.size(Axis::kCp);
  const bool overlaps = job.optimizer.overlap_grad_reduce || job.optimizer.overlap_param_gather;
  request.shares_embedding =
      overlaps && dp > 1 && module.transformer.tied_embeddings && placed.grid.size(Axis::kPp) > 1;
  // Chunks behind the first are gathered and reduced beside compute anyway: one bucket, as Megatron
  // has it.
  if (overlaps && dp > 1 && stage < placed.grid.size(Axis::kPp)) {
    const std::int64_t given = job.optimizer.bucket_parameters;
    request.bucket_parameters =
        given > 0 ? given : std::max<std::int64_t>(40'000'000, 1'000'000 * dp);
  }
  return request;
}

std::vector<StagePlan> PlanStages(const Job& job, int module_index, const PlacedModule& placed) {
  bool trained_before = false;
  if (module_index == job.decoder()) {
    for (const Edge& edge : job.edges)
      trained_before = trained_before || EncoderTrains(ModuleOf(job, edge.from));
  }
  std::vector<StagePlan> stages;
  for (std::size_t stage = 0; stage + 1 < placed.first_layer.size(); ++stage) {
    stages.push_back(PlanStage(
        RequestStage(job, module_index, placed, static_cast<int>(stage), trained_before)));
    trained_before = trained_before || stages.back().trained_parameters > 0;
  }
  return stages;
}

Boundary PlanBoundary(const Job& job, const std::vector<PlacedModule>& modules, const Edge& edge) {
  const Module& encoder = ModuleOf(job, edge.from);
  BoundaryTokens tokens{.tokens_per_sample = encoder.llm_tokens_per_sample,
                        .samples_per_microbatch = job.workload.microbatch_size,
                        .num_microbatches = job.num_microbatches(),
                        .width = BoundaryWidth(job, edge.from)};
  tokens.span_tokens =
      encoder.span_tokens * encoder.llm_tokens_per_sample / encoder.tokens_per_sample;
  tokens.spans_of_sample = encoder.spans_of_sample;
  const Grid& from = modules[static_cast<std::size_t>(edge.from)].grid;
  const Grid& to = modules[static_cast<std::size_t>(edge.to)].grid;
  if (job.placement == Placement::kColocated)
    return BuildColocatedBoundary(from, to, tokens, job.num_ranks);
  if (job.placement == Placement::kNonColocated)
    return BuildNonColocatedBoundary(from, to, tokens, job.num_ranks);
  Boundary local{.width = tokens.width};
  local.tokens_forward = LlmSpans(encoder).TokensBefore(job.workload.global_batch);
  return local;
}

/// A leader's exchange names its messages by 16 bits.
void CheckMessages(const PlacedJob& placed, std::size_t edge) {
  constexpr std::size_t kMostMessages = 10'000;
  std::size_t most = 0;
  for (const RankBoundary& rank : placed.boundaries[edge].ranks) {
    most = std::max({most, rank.sends_forward.size(), rank.receives_forward.size()});
  }
  if (most <= kMostMessages) return;
  const Edge& between = placed.job->edges[edge];
  throw base::Error(fmt::format(
      "one rank of {} or {} would exchange {} messages a microbatch with the other; at most {} are "
      "built\n  hint: give the module with fewer data-parallel copies more of them",
      ModuleOf(*placed.job, between.from).name, ModuleOf(*placed.job, between.to).name, most,
      kMostMessages));
}

}  // namespace

bool PlacedJob::is_trained(int module) const {
  const std::vector<StagePlan>& plans = stages[static_cast<std::size_t>(module)];
  return std::any_of(plans.begin(), plans.end(),
                     [](const StagePlan& plan) { return plan.trained_parameters > 0; });
}

bool PlacedJob::needs_input_gradient(int module, int virtual_stage) const {
  const StagePlan& plan =
      stages[static_cast<std::size_t>(module)][static_cast<std::size_t>(virtual_stage)];
  return plan.plain.front().backward.front().needs_input_gradient;
}

bool PlacedJob::edge_has_gradient(int edge) const {
  return EncoderTrains(ModuleOf(*job, job->edges[static_cast<std::size_t>(edge)].from));
}

PlacedJob Place(const Job& job) {
  PlacedJob placed{.job = &job};
  const int decoder = job.decoder();
  const Layout& llm = *ModuleOf(job, decoder).layout;
  const Grid llm_grid(llm, ModuleOf(job, decoder).settings.optimizer_instances);
  for (std::size_t index = 0; index < job.modules.size(); ++index) {
    const Module& module = job.modules[index];
    const int instances = module.settings.optimizer_instances;
    const Grid grid = static_cast<int>(index) == decoder ? llm_grid
                      : module.layout                    ? Grid(*module.layout, instances)
                                                         : Grid(llm, instances).StageView(0);
    PlacedModule& entry = placed.modules.emplace_back(PlacedModule{.module = module, .grid = grid});
    const std::vector<int> given = module.layout ? module.layout->stage_layers : std::vector<int>{};
    const int pp = grid.size(Axis::kPp);
    const int num_chunks = module.layout ? module.layout->vpp : 1;
    entry.first_layer = SplitLayers(module.transformer.num_layers, pp * num_chunks, given);
    placed.stages.push_back(PlanStages(job, static_cast<int>(index), entry));
    entry.rank_parameters.assign(static_cast<std::size_t>(pp), 0);
    for (std::size_t stage = 0; stage < placed.stages.back().size(); ++stage) {
      const StagePlan& plan = placed.stages.back()[stage];
      entry.rank_parameters[stage % static_cast<std::size_t>(pp)] +=
          plan.trained_parameters + plan.frozen_parameters;
      entry.contents.push_back(
          {.block = plan.whole, .first_layer = plan.first_layer, .buckets = plan.buckets});
    }
  }
  for (const Edge& edge : job.edges) {
    placed.boundaries.push_back(PlanBoundary(job, placed.modules, edge));
    placed.spans.push_back(LlmSpans(ModuleOf(job, edge.from)));
  }
  for (std::size_t edge = 0; edge < placed.boundaries.size(); ++edge) CheckMessages(placed, edge);
  std::vector<int> num_stages;
  for (const PlacedModule& module : placed.modules) {
    num_stages.push_back(module.grid.size(Axis::kPp));
  }
  placed.warmup = WarmupDepths(num_stages, job.edges, job.schedule.warmup_rule);
  return placed;
}

namespace {

/// Tokens at the LLM of `encoder`'s samples that `rank` of `module` (the encoder or the LLM) works
/// on: of a microbatch, the first one alone where all are alike; colocated encoders: of the window.
std::vector<std::int64_t> LlmTokensOnRank(const PlacedJob& placed, int encoder, int module,
                                          base::Rank rank) {
  const Job& job = *placed.job;
  const Grid& grid = placed.modules[static_cast<std::size_t>(module)].grid;
  const auto found = std::find_if(job.edges.begin(), job.edges.end(),
                                  [&](const Edge& edge) { return edge.from == encoder; });
  const auto edge = static_cast<std::size_t>(found - job.edges.begin());
  const Boundary& boundary = placed.boundaries[edge];
  const SampleSpans& spans = placed.spans[edge];
  const bool is_lane = module == encoder && !boundary.ranks.empty();
  const bool alike = spans.are_alike() || (is_lane && boundary.colocated);
  std::vector<std::int64_t> tokens;
  for (std::int64_t microbatch = 0; microbatch < (alike ? 1 : job.num_microbatches());
       ++microbatch) {
    if (is_lane) {
      // All ranks of a lane run the lane's tokens, also on stages that hold no output.
      const base::Rank leader = grid.Group(rank, kDp.Others()).back();
      tokens.push_back(
          boundary.At(leader, static_cast<std::int32_t>(microbatch)).held_forward.size());
      continue;
    }
    const std::int64_t size = job.workload.microbatch_size;
    const std::int64_t first =
        (grid.IndexIn(rank, kDp) * job.num_microbatches() + microbatch) * size;
    tokens.push_back(spans.TokensBefore(first + size) - spans.TokensBefore(first));
  }
  return tokens;
}

BlockShape DecoderShape(const Job& job, const Module& module, const Grid& grid) {
  const std::int64_t cp = grid.size(Axis::kCp);
  return {.module = &module,
          .tp = grid.size(Axis::kTp),
          .cp = static_cast<int>(cp),
          .tokens = job.workload.microbatch_size * job.workload.sequence_length / cp,
          .span = module.span_tokens > 0 ? module.span_tokens : job.workload.sequence_length};
}

}  // namespace

bool PlacedJob::microbatches_differ(int edge) const {
  const auto at = static_cast<std::size_t>(edge);
  return boundaries[at].ranks.empty() ? !spans[at].are_alike()
                                      : boundaries[at].microbatches_differ();
}

std::vector<BlockShape> ShapesOnRank(const PlacedJob& placed, int module_index, base::Rank rank) {
  const Job& job = *placed.job;
  const Module& module = ModuleOf(job, module_index);
  const Grid& grid = placed.modules[static_cast<std::size_t>(module_index)].grid;
  int encoder = module_index;
  BlockShape shape{.module = &module, .tp = grid.size(Axis::kTp)};
  const bool is_decoder = module.kind == ModuleKind::kDecoder;
  if (is_decoder) {
    shape = DecoderShape(job, module, grid);
    shape.projector = LlmProjector(job, &encoder);
    const bool projects = shape.projector != nullptr && grid.Coordinate(rank, Axis::kPp) == 0;
    if (!projects) return {shape};
  } else {
    if (job.placement != Placement::kHomogeneous) shape.cp = grid.size(Axis::kCp);
    shape.span = module.span_tokens;
    shape.projector = module.projector ? &*module.projector : nullptr;
  }
  if (shape.projector != nullptr) {
    shape.projector_in = ShuffledWidth(ModuleOf(job, encoder));
    shape.projector_out = ModuleOf(job, job.decoder()).transformer.hidden;
  }
  std::vector<BlockShape> shapes;
  for (const std::int64_t llm_tokens : LlmTokensOnRank(placed, encoder, module_index, rank)) {
    shape.projector_tokens = llm_tokens;
    if (!is_decoder)
      shape.tokens = llm_tokens * module.tokens_per_sample / module.llm_tokens_per_sample;
    shapes.push_back(shape);
  }
  return shapes;
}

}  // namespace isthmus::plan
