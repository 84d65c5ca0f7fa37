#include "sim/memory/stage_memory.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "plan/build/placed_job.h"
#include "plan/model/layers.h"
#include "plan/program/value.h"
#include "plan/schedule/interleaved.h"
#include "sim/memory/stage_sizes.h"

namespace isthmus::sim {
namespace {

using plan::MemoryCategory;

/// The peak of one stage: takes and gives back what its calls do, in their order.
class StageWalk {
 public:
  StageWalk(const plan::Job& job, const plan::PlacedJob& placed, int stage)
      : job_(job),
        stage_{.stage = stage,
               .num_stages = placed.num_stages(0),
               .num_chunks = placed.modules.front().num_chunks()} {
    const plan::Grid& grid = placed.modules.front().grid;
    for (int rank = 0; rank < grid.num_ranks(); ++rank) {
      if (grid.Coordinate(base::Rank{rank}, plan::Axis::kPp) != stage) continue;
      shape_ = plan::ShapesOnRank(placed, 0, base::Rank{rank}).front();
      break;
    }
    for (int chunk = 0; chunk < stage_.num_chunks; ++chunk) {
      const int virtual_stage = chunk * stage_.num_stages + stage;
      plans_.push_back(&placed.stages.front()[static_cast<std::size_t>(virtual_stage)]);
    }
    AddWhatStays(grid);
    for (const plan::StagePlan* plan : plans_) chunks_.push_back(SizesOf(shape_, *plan));
  }

  traces::MemoryPeak Peak(std::int64_t num_microbatches) {
    num_microbatches_ = static_cast<int>(num_microbatches);
    Look({}, "between steps");
    for (const plan::PipelineCall& call :
         plan::InterleavedOneForwardOneBackward(stage_, num_microbatches_)) {
      switch (call.kind) {
        case plan::PipelineCall::Kind::kExchange:
          Exchange(call);
          break;
        case plan::PipelineCall::Kind::kForward:
          Forward(call.turn);
          break;
        case plan::PipelineCall::Kind::kBackward:
          Backward(call.turn);
          break;
      }
    }
    traces::MemoryPeak peak{.peak_bytes = peak_sum_};
    peak.phase = phase_;
    for (std::size_t category = 0; category < at_peak_.size(); ++category) {
      if (at_peak_[category] == 0) continue;
      peak.categories[plan::ToText(static_cast<MemoryCategory>(category))] = at_peak_[category];
    }
    return peak;
  }

 private:
  std::int64_t& live(MemoryCategory category) { return live_[static_cast<std::size_t>(category)]; }

  void AddWhatStays(const plan::Grid& grid) {
    const plan::Module& module = job_.modules.front();
    const std::int64_t parameter = plan::BytesOf(plan::ParameterType(module.settings)).value();
    const std::int64_t gradient = plan::BytesOf(module.settings.gradient_dtype).value();
    std::int64_t held = 0;
    plan::BlockShape whole = shape_;
    whole.block = plans_.front()->whole;
    for (const plan::StagePlan* plan : plans_) {
      held += plan->trained_parameters;
      if (plan == plans_.front()) continue;
      whole.block.num_layers += plan->whole.num_layers;
      whole.block.head = whole.block.head || plan->whole.head;
    }
    const std::int64_t shards =
        std::int64_t{grid.size(plan::Axis::kDpShard)} * grid.size(plan::Axis::kCp);
    const std::int64_t state = plan::OptimizerStateBytes(module.settings.precision).value();
    live(MemoryCategory::kParameters) = held * parameter + plan::WeightCopyBytes(whole).value();
    live(MemoryCategory::kGradients) = held * gradient;
    live(MemoryCategory::kOptimizerState) = (held + shards - 1) / shards * state;
    live(MemoryCategory::kPlaceholders) = plan::PlaceholderBytes(whole).value();
  }

  bool Starts(const plan::Turn& turn) const { return turn.chunk == 0 && stage_.stage == 0; }
  bool Ends(const plan::Turn& turn) const {
    return turn.chunk + 1 == stage_.num_chunks && stage_.stage + 1 == stage_.num_stages;
  }
  const ChunkSizes& ChunkOf(const plan::Turn& turn) const {
    return chunks_[static_cast<std::size_t>(turn.chunk)];
  }
  const std::vector<BlockSizes>& BlocksOf(const plan::Turn& turn) const {
    const bool first = turn.microbatch == 0 && job_.optimizer.overlap_param_gather;
    const bool last =
        turn.microbatch + 1 == num_microbatches_ && job_.optimizer.overlap_grad_reduce;
    return first || last ? ChunkOf(turn).bucketed : ChunkOf(turn).plain;
  }

  /// `transient` on top of what is live: the peak so far, if it is more.
  void Look(const plan::Transient& transient, const char* phase = nullptr) {
    std::int64_t sum = transient.bytes.value();
    for (const std::int64_t bytes : live_) sum += bytes;
    if (sum <= peak_sum_) return;
    peak_sum_ = sum;
    at_peak_ = live_;
    at_peak_[static_cast<std::size_t>(MemoryCategory::kTransient)] += transient.bytes.value();
    phase_ = phase != nullptr ? phase : plan::ToText(transient.moment);
  }

  void Exchange(const plan::PipelineCall& call) {
    std::int64_t& tensors = live(MemoryCategory::kActivations);
    if (call.receive_forward.exists() && !Starts(call.receive_forward)) {
      tensors += ChunkOf(call.receive_forward).input;
    }
    if (call.receive_backward.exists() && !Ends(call.receive_backward)) {
      tensors += ChunkOf(call.receive_backward).output;
    }
    Look({}, "exchange");
    if (call.send_forward.exists() && !Ends(call.send_forward)) {
      tensors -= ChunkOf(call.send_forward).output;
    }
    if (call.send_backward.exists() && !Starts(call.send_backward)) {
      tensors -= ChunkOf(call.send_backward).input;
    }
  }

  void Forward(const plan::Turn& turn) {
    std::int64_t& tensors = live(MemoryCategory::kActivations);
    std::int64_t input = Starts(turn) ? 0 : ChunkOf(turn).input;
    for (const BlockSizes& block : BlocksOf(turn)) {
      tensors += block.output;
      for (const UnitSizes& unit : block.units) {
        tensors += unit.saved;
        live(MemoryCategory::kLogits) += unit.logits;
      }
      Look(block.forward);
      tensors -= input;
      input = block.output;
    }
  }

  void Backward(const plan::Turn& turn) {
    std::vector<const UnitSizes*> units;
    for (const BlockSizes& block : BlocksOf(turn)) {
      for (const UnitSizes& unit : block.units) units.push_back(&unit);
    }
    std::int64_t& tensors = live(MemoryCategory::kActivations);
    std::int64_t output_gradient = Ends(turn) ? 0 : ChunkOf(turn).output;
    for (std::size_t index = units.size(); index-- > 0;) {
      const UnitSizes& unit = *units[index];
      std::int64_t kept = unit.saved;
      if (unit.rebuilt > 0) {
        tensors += unit.rebuilt;
        Look(unit.recompute);
        tensors -= unit.saved;
        kept = unit.rebuilt;
      }
      const std::int64_t input_gradient = index > 0      ? units[index - 1]->gradient
                                          : Starts(turn) ? 0
                                                         : ChunkOf(turn).input;
      tensors += input_gradient;
      Look(unit.backward);
      tensors -= kept + output_gradient;
      live(MemoryCategory::kLogits) -= unit.logits;
      output_gradient = input_gradient;
    }
  }

  using Bytes = std::array<std::int64_t, plan::kNumMemoryCategories>;

  const plan::Job& job_;
  plan::InterleavedStage stage_;
  plan::BlockShape shape_;
  std::vector<const plan::StagePlan*> plans_;  // by chunk
  std::vector<ChunkSizes> chunks_;
  int num_microbatches_ = 0;
  Bytes live_{};
  Bytes at_peak_{};
  std::int64_t peak_sum_ = -1;
  const char* phase_ = "";
};

/// As many microbatches as the steady phase needs to be reached and left again.
std::int64_t Enough(std::int64_t num_microbatches, std::int64_t num_stages, int num_chunks) {
  const std::int64_t enough = 4 * num_stages;
  const bool repeats = num_chunks == 1 || num_microbatches % num_stages == 0;
  return repeats ? std::min(num_microbatches, enough) : num_microbatches;
}

/// Communicators that carry tensors: tp, cp, the shards and copies of the optimizer, the shared
/// embedding, one for P2P. With one shard over dp the shards' group is the cp group.
int CountCommunicators(const plan::Job& job, const plan::Grid& grid, int stage) {
  const int num_stages = grid.size(plan::Axis::kPp);
  const bool shares = job.modules.front().transformer.tied_embeddings && num_stages > 1 &&
                      (stage == 0 || stage + 1 == num_stages);
  int count = 0;
  for (const plan::Axis axis : {plan::Axis::kTp, plan::Axis::kCp, plan::Axis::kDpShard,
                                plan::Axis::kDpReplica, plan::Axis::kPp}) {
    count += grid.size(axis) > 1 ? 1 : 0;
  }
  return count + (shares ? 1 : 0);
}

}  // namespace

std::optional<std::vector<traces::MemoryPeak>> PredictStageMemory(const plan::Job& job,
                                                                  const MemoryFacts& facts) {
  const plan::ModuleSettings& settings = job.modules.front().settings;
  const bool is_covered = job.modules.size() == 1 && !settings.frozen &&
                          job.schedule.defer_embedding_wgrad == 0 &&
                          settings.backward == plan::BackwardMode::kReal;
  if (!is_covered) return std::nullopt;
  const plan::PlacedJob placed = plan::Place(job);
  const plan::PlacedModule& module = placed.modules.front();
  const std::int64_t microbatches =
      Enough(job.num_microbatches(), placed.num_stages(0), module.num_chunks());
  std::vector<traces::MemoryPeak> peaks;
  for (int stage = 0; stage < placed.num_stages(0); ++stage) {
    peaks.push_back(StageWalk(job, placed, stage).Peak(microbatches));
    AddWhatIsNoTensor(facts, CountCommunicators(job, module.grid, stage), peaks.back());
  }
  return peaks;
}

}  // namespace isthmus::sim
