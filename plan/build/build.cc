#include <algorithm>
#include <map>
#include <optional>

#include "base/check.h"
#include "base/hash.h"
#include "plan/build/placed_job.h"
#include "plan/build/rank_emitter.h"
#include "plan/program/program.h"
#include "plan/schedule/interleaved.h"

namespace isthmus::plan {
namespace {

void AddTo(std::vector<std::int64_t>& key, const RankBoundary& here) {
  for (const int entry : StepShape(here)) key.push_back(entry);
  key.push_back(here.held_forward.size());
  key.push_back(here.needed_forward.size());
  key.push_back(here.held_backward.size());
  key.push_back(here.needed_backward.size());
  for (const auto* steps : {&here.forward, &here.backward}) {
    for (const BoundaryStep& step : *steps) key.push_back(step.tokens);
  }
  for (const auto* messages : {&here.sends_forward, &here.receives_forward, &here.sends_backward,
                               &here.receives_backward}) {
    for (const BoundaryMessage& message : *messages) key.push_back(message.tokens.size());
  }
}

/// Everything a rank's ops and sizes depend on; ranks with equal keys are emitted once.
std::vector<std::int64_t> EmissionKey(const PlacedJob& placed, base::Rank rank) {
  std::vector<std::int64_t> key;
  for (std::size_t module = 0; module < placed.modules.size(); ++module) {
    const Grid& grid = placed.modules[module].grid;
    if (!grid.contains(rank)) {
      key.push_back(-1);
      continue;
    }
    key.push_back(grid.Coordinate(rank, Axis::kPp));
    for (const BlockShape& shape : ShapesOnRank(placed, static_cast<int>(module), rank)) {
      key.push_back(shape.tokens);
      key.push_back(shape.projector_tokens.value_or(-1));
    }
  }
  for (const Boundary& boundary : placed.boundaries) {
    if (boundary.ranks.empty()) continue;
    AddTo(key, boundary.ranks[rank.index()]);
    for (const std::vector<RankBoundary>& others : boundary.other_ranks) {
      AddTo(key, others[rank.index()]);
    }
  }
  return key;
}

template <typename T>
std::uint32_t InternByHash(std::map<std::uint64_t, std::uint32_t>& known, std::vector<T>& items,
                           std::uint64_t hash, T item) {
  const auto [at, is_new] = known.try_emplace(hash, static_cast<std::uint32_t>(items.size()));
  if (is_new) items.push_back(std::move(item));
  return at->second;
}

/// Several chunks a rank are for the LLM where it is a pipeline by itself.
void CheckChunks(const Job& job) {
  for (std::size_t index = 0; index < job.modules.size(); ++index) {
    const std::optional<Layout>& layout = job.modules[index].layout;
    if (!layout || layout->vpp == 1) continue;
    ISTHMUS_CHECK(
        static_cast<int>(index) == job.decoder() && job.placement != Placement::kNonColocated &&
            CanInterleave(layout->pp, layout->vpp, static_cast<int>(job.num_microbatches())),
        "vpp {} of module {}", layout->vpp, job.modules[index].name);
  }
}

/// Spans of each sample, where samples differ.
void CheckSpans(const Job& job) {
  for (const Module& module : job.modules) {
    if (module.spans_of_sample.empty()) continue;
    const auto samples = static_cast<std::int64_t>(module.spans_of_sample.size());
    const std::int32_t most =
        *std::max_element(module.spans_of_sample.begin(), module.spans_of_sample.end());
    ISTHMUS_CHECK(module.kind != ModuleKind::kDecoder && samples == job.workload.global_batch &&
                      module.tokens_per_sample == most * module.span_tokens,
                  "spans of {} samples, most {}, in module {}", samples, most, module.name);
  }
}

/// Whether every sample of the step has one place.
bool IsOrder(const Workload& workload) {
  std::vector<bool> placed(static_cast<std::size_t>(workload.global_batch), false);
  for (const std::int32_t sample : workload.sample_order) {
    if (sample < 0 || sample >= workload.global_batch) return false;
    placed[static_cast<std::size_t>(sample)] = true;
  }
  return workload.sample_order.size() == placed.size() &&
         std::all_of(placed.begin(), placed.end(), [](bool is_placed) { return is_placed; });
}

void CheckJob(const Job& job) {
  ISTHMUS_CHECK(job.decoder() >= 0, "a job needs one decoder");
  ISTHMUS_CHECK(job.num_microbatches() > 0, "a job needs at least one microbatch");
  ISTHMUS_CHECK(job.num_ranks > 0 && job.num_steps > 0, "a job needs ranks and steps");
  CheckChunks(job);
  CheckSpans(job);
  ISTHMUS_CHECK(job.workload.sample_order.empty() || IsOrder(job.workload),
                "an order of {} samples of {}", job.workload.sample_order.size(),
                job.workload.global_batch);
}

void FillPasses(const Job& job, Program& program) {
  if (job.optimizer.overlap_param_gather) program.passes.emplace_back("overlap_param_gather");
  if (job.optimizer.overlap_grad_reduce) program.passes.emplace_back("overlap_grad_reduce");
  for (const Module& module : job.modules) {
    if (module.settings.recompute == Recompute::kFull)
      program.passes.push_back("recompute " + module.name);
    if (module.settings.offload_parameters) program.passes.push_back("offload " + module.name);
  }
}

}  // namespace

Program Build(const Job& job) {
  CheckJob(job);
  PlacedJob placed = Place(job);
  Program program;
  program.name = job.name;
  program.placement = job.placement;
  program.num_ranks = job.num_ranks;
  program.num_steps = job.num_steps;
  program.workload = job.workload;
  program.num_microbatches = job.num_microbatches();
  program.schedule = job.schedule;
  program.edges = job.edges;
  WorkPool works;
  std::map<std::vector<std::int64_t>, std::pair<std::uint32_t, std::uint32_t>> emitted;
  std::map<std::uint64_t, std::uint32_t> roles;
  std::map<std::uint64_t, std::uint32_t> tables;
  for (int index = 0; index < job.num_ranks; ++index) {
    const base::Rank rank{index};
    const auto [at, is_new] = emitted.try_emplace(EmissionKey(placed, rank));
    if (is_new) {
      EmittedRank result = RankEmitter(placed, works, rank).Emit();
      const std::uint64_t role_hash = HashRole(result.role);
      const std::uint64_t table_hash = HashTable(result.table);
      at->second.first = InternByHash(roles, program.roles, role_hash, std::move(result.role));
      at->second.second = InternByHash(tables, program.tables, table_hash, std::move(result.table));
    }
    program.role_of_rank.push_back(at->second.first);
    program.table_of_rank.push_back(at->second.second);
  }
  program.works = works.Take();
  program.modules = std::move(placed.modules);
  program.boundaries = std::move(placed.boundaries);
  FillPasses(job, program);
  return program;
}

}  // namespace isthmus::plan
