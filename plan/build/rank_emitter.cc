#include "plan/build/rank_emitter.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "plan/schedule/interleaved.h"
#include "plan/schedule/one_f_one_b.h"

namespace isthmus::plan {

RankEmitter::RankEmitter(const PlacedJob& placed, WorkPool& works, base::Rank rank)
    : placed_(placed), job_(*placed.job), works_(works), rank_(rank), writer_("") {
  AddStations(rank);
}

void RankEmitter::AddStations(base::Rank rank) {
  stations_.reserve(job_.modules.size());
  for (std::size_t index = 0; index < job_.modules.size(); ++index) {
    const PlacedModule& placed = placed_.modules[index];
    if (!placed.grid.contains(rank)) continue;
    const int module = static_cast<int>(index);
    const int stage = placed.grid.Coordinate(rank, Axis::kPp);
    const int num_stages = placed_.num_stages(module);
    const bool window = job_.placement == Placement::kColocated && module != job_.decoder();
    const int num_microbatches = window ? 1 : static_cast<int>(job_.num_microbatches());
    const int num_chunks = placed.num_chunks();
    std::vector<const StagePlan*> chunks;
    for (int chunk = 0; chunk < num_chunks; ++chunk) {
      const int virtual_stage = chunk * num_stages + stage;
      chunks.push_back(&placed_.stages[index][static_cast<std::size_t>(virtual_stage)]);
    }
    const StageOnRank at{.module = module,
                         .stage = stage,
                         .ends_module = stage + 1 == num_stages,
                         .chunks = std::move(chunks),
                         .shapes = ShapesOnRank(placed_, module, rank),
                         .num_microbatches = num_microbatches,
                         .first_microbatch = window ? -1 : 0,
                         .tp = placed.grid.size(Axis::kTp),
                         .module_ranks = placed.grid.num_ranks(),
                         .dp_shard = placed.grid.size(Axis::kDpShard) * placed.grid.size(Axis::kCp),
                         .dp_replica = placed.grid.size(Axis::kDpReplica),
                         .module_trained = placed_.is_trained(module),
                         .embedding_is_shared = placed.module.transformer.tied_embeddings &&
                                                num_stages > 1 && !placed.module.settings.frozen};
    stations_.push_back(
        {.module = module,
         .stage = stage,
         .num_stages = num_stages,
         .num_chunks = num_chunks,
         .emitter = ModuleEmitter(writer_, works_, job_, at),
         .waiting = {static_cast<std::size_t>(num_chunks),
                     std::vector<Waiting>(static_cast<std::size_t>(num_microbatches))}});
  }
}

RankEmitter::Station* RankEmitter::StationOf(int module) {
  for (Station& station : stations_) {
    if (station.module == module) return &station;
  }
  return nullptr;
}

void RankEmitter::Station::Clear() {
  for (std::vector<Waiting>& chunk : waiting) {
    for (Waiting& turn : chunk) turn = {};
  }
}

std::string RankEmitter::RoleName() const {
  std::string name;
  for (const Station& station : stations_) {
    if (!name.empty()) name += " ";
    name += fmt::format("{}.{}", job_.modules[static_cast<std::size_t>(station.module)].name,
                        station.stage);
  }
  for (const Boundary& boundary : placed_.boundaries) {
    if (boundary.ranks.empty() || boundary.colocated) continue;
    const RankBoundary& here = boundary.ranks[rank_.index()];
    if (here.source_leader || here.destination_leader) return name + " leader";
  }
  return name;
}

EmittedRank RankEmitter::Emit() {
  for (int step = 0; step < job_.num_steps; ++step) {
    state_ = {.step = step};
    for (Station& station : stations_) station.Clear();
    for (Station& station : stations_) station.emitter.BeginStep(state_);
    state_.serial.reset();
    switch (job_.placement) {
      case Placement::kHomogeneous:
        EmitHomogeneousStep();
        break;
      case Placement::kColocated:
        EmitThreePhaseStep();
        break;
      case Placement::kNonColocated:
        EmitNonColocatedStep();
        break;
    }
    FinishStep();
  }
  Role role = writer_.TakeRole();
  role.name = RoleName();
  for (const Station& station : stations_) {
    role.stages.push_back({.module = static_cast<std::uint16_t>(station.module),
                           .stage = static_cast<std::uint16_t>(station.stage)});
  }
  return {std::move(role), writer_.TakeTable()};
}

void RankEmitter::EmitHomogeneousStep() {
  Station& llm = *StationOf(job_.decoder());
  RunPipeline(llm, LlmCalls(llm));
}

std::vector<PipelineCall> RankEmitter::LlmCalls(const Station& llm) const {
  return InterleavedOneForwardOneBackward(
      {.stage = llm.stage, .num_stages = llm.num_stages, .num_chunks = llm.num_chunks},
      static_cast<int>(job_.num_microbatches()));
}

void RankEmitter::EmitNonColocatedStep() {
  ISTHMUS_CHECK(stations_.size() == 1, "rank {} holds {} modules of a non-colocated job",
                rank_.value(), stations_.size());
  Station& station = stations_.front();
  const int warmup_depth = placed_.warmup[static_cast<std::size_t>(station.module)]
                                         [static_cast<std::size_t>(station.stage)];
  RunPipeline(station,
              OneForwardOneBackward(warmup_depth, static_cast<int>(job_.num_microbatches())));
}

void RankEmitter::EmitThreePhaseStep() {
  constexpr Turn kWindow{.microbatch = 0};  // the one turn of an encoder
  // Phase 1: every encoder over the whole window, while its collectives have all its ranks at hand.
  for (std::size_t edge = 0; edge < job_.edges.size(); ++edge) {
    Station& encoder = *StationOf(job_.edges[edge].from);
    RunExchange(encoder, {.receive_forward = kWindow});
    Forward(encoder, kWindow);
    RunExchange(encoder, {.send_forward = kWindow});
    std::vector<ValueId> held;
    if (encoder.ends_module(kWindow)) held.push_back(*encoder.at(kWindow).output);
    window_[static_cast<int>(edge)] =
        RunBoundarySteps(static_cast<int>(edge), Way::kForward, held, -1);
    window_gradient_[static_cast<int>(edge)].reset();
    if (job_.modules[static_cast<std::size_t>(encoder.module)].settings.offload_parameters) {
      encoder.emitter.Offload(state_, CopyDirection::kToHost, LastProduced());
    }
  }
  // Phase 2: the LLM's 1F1B on detached tensors.
  Station& llm = *StationOf(job_.decoder());
  RunPipeline(llm, LlmCalls(llm));
  // Phase 3: encoder backward, once.
  for (std::size_t index = job_.edges.size(); index-- > 0;) {
    const int edge = static_cast<int>(index);
    Station& encoder = *StationOf(job_.edges[index].from);
    if (!placed_.edge_has_gradient(edge)) continue;
    std::vector<ValueId> held;
    if (window_gradient_[edge]) held.push_back(*window_gradient_[edge]);
    const std::vector<ValueId> gradient = RunBoundarySteps(edge, Way::kBackward, held, -1);
    if (encoder.ends_module(kWindow)) encoder.at(kWindow).output_gradients = gradient;
    RunExchange(encoder, {.receive_backward = kWindow});
    Backward(encoder, kWindow);
    RunExchange(encoder, {.send_backward = kWindow});
  }
}

void RankEmitter::RunPipeline(Station& station, const std::vector<PipelineCall>& calls) {
  std::int64_t forwards_left = job_.num_microbatches() * station.num_chunks;
  for (const PipelineCall& call : calls) {
    switch (call.kind) {
      case PipelineCall::Kind::kExchange:
        RunExchange(station, call);
        break;
      case PipelineCall::Kind::kForward:
        Forward(station, call.turn);
        turn_end_ = LastProduced();
        if (--forwards_left == 0) ReloadEncoders();
        break;
      case PipelineCall::Kind::kBackward:
        Backward(station, call.turn);
        turn_end_ = LastProduced();
        break;
    }
  }
  turn_end_.clear();
}

// When cool-down begins, parameters that went to the host come back beside it.
void RankEmitter::ReloadEncoders() {
  if (job_.placement != Placement::kColocated) return;
  for (Station& station : stations_) {
    const Module& module = job_.modules[static_cast<std::size_t>(station.module)];
    if (module.settings.offload_parameters) {
      station.emitter.Offload(state_, CopyDirection::kToDevice, LastProduced());
    }
  }
}

void RankEmitter::Forward(Station& station, const Turn& turn) {
  std::vector<ValueId> inputs = station.at(turn).inputs;
  const bool takes_edges = station.module == job_.decoder() && station.starts_module(turn);
  for (std::size_t edge = 0; takes_edges && edge < job_.edges.size(); ++edge) {
    if (job_.placement == Placement::kHomogeneous) {
      Station& encoder = *StationOf(job_.edges[edge].from);
      Forward(encoder, turn);
      inputs.push_back(*encoder.at(turn).output);
    } else if (job_.placement == Placement::kColocated) {
      const std::vector<ValueId>& window = window_[static_cast<int>(edge)];
      inputs.insert(inputs.end(), window.begin(), window.end());
    }
  }
  station.at(turn).output = station.emitter.Forward(state_, turn, inputs);
}

std::vector<ValueId> RankEmitter::NewBoundaryGradients(const Turn& turn) {
  std::vector<ValueId> gradients;
  for (std::size_t index = 0; index < job_.edges.size(); ++index) {
    const int edge = static_cast<int>(index);
    if (!placed_.edge_has_gradient(edge)) continue;
    std::optional<ValueId>& window = window_gradient_[edge];
    const bool colocated = job_.placement == Placement::kColocated;
    if (colocated && window) {
      window = writer_.NextVersion(*window);
      gradients.push_back(*window);
      continue;
    }
    const std::int64_t tokens =
        job_.placement == Placement::kHomogeneous
            ? *StationOf(job_.edges[index].from)->emitter.shape_at(turn).projector_tokens
            : BoundaryOf(edge, turn.microbatch).held_backward.size();
    const SlotKey key{.what = kSlotBoundary,
                      .module = static_cast<std::uint16_t>(edge),
                      .extra = 1,
                      .microbatch = SizeMicrobatch(edge, turn.microbatch)};
    const ValueId gradient =
        writer_.AddValue(BoundaryStorage(edge, Way::kBackward, colocated ? -1 : turn.microbatch,
                                         writer_.Size(key, BoundaryBytes(edge, tokens))));
    if (colocated) window = gradient;
    gradients.push_back(gradient);
  }
  return gradients;
}

void RankEmitter::Backward(Station& station, const Turn& turn) {
  const bool takes_edges = station.module == job_.decoder() && station.starts_module(turn);
  std::vector<ValueId> accumulated;
  std::vector<ValueId> produced;
  if (takes_edges) {
    for (auto& [edge, gradient] : window_gradient_) {
      if (gradient) accumulated.push_back(*gradient);
    }
    produced = NewBoundaryGradients(turn);
  } else if (!station.starts_module(turn) &&
             placed_.needs_input_gradient(station.module, station.virtual_stage(turn)) &&
             station.emitter.has_backward(turn.chunk)) {
    const SlotKey key{.what = kSlotShape,
                      .module = static_cast<std::uint16_t>(station.module),
                      .extra = 1,
                      .microbatch = station.emitter.size_microbatch(turn)};
    produced.push_back(
        writer_.AddValue({.kind = ValueKind::kGradient,
                          .module = static_cast<std::uint16_t>(station.module),
                          .chunk = static_cast<std::uint16_t>(turn.chunk),
                          .microbatch = turn.microbatch,
                          .size = writer_.Size(key, station.emitter.input_bytes(turn))}));
  }
  Waiting& here = station.at(turn);
  station.emitter.Backward(state_, turn, here.output_gradients, accumulated, produced);
  here.input_gradients = produced;
  if (!takes_edges || job_.placement != Placement::kHomogeneous) return;
  std::size_t next = produced.size();
  for (std::size_t index = job_.edges.size(); index-- > 0;) {
    if (!placed_.edge_has_gradient(static_cast<int>(index))) continue;
    Station& encoder = *StationOf(job_.edges[index].from);
    encoder.at(turn).output_gradients = {produced[--next]};
    Backward(encoder, turn);
  }
}

std::vector<ValueId> RankEmitter::LastProduced() const {
  if (state_.last_compute == kNone32) return {};
  const Role& role = writer_.role();
  const auto produced = role.produced_by(role.ops[state_.last_compute]);
  return produced.empty() ? std::vector<ValueId>{} : std::vector<ValueId>{produced.front()};
}

void RankEmitter::FinishStep() {
  for (Station& station : stations_) station.emitter.FinishDeferred(state_);
  if (state_.last_compute != kNone32) writer_.Flag(state_.last_compute, kEndsBackward);
  std::vector<ValueId> after_model = LastProduced();
  for (auto station = stations_.rbegin(); station != stations_.rend(); ++station) {
    station->emitter.SyncGradients(state_);
  }
  for (ValueId& value : after_model) value = writer_.Newest(value);
  std::vector<ValueId> predicates;
  const auto over_world = [&](const std::vector<ValueId>& consumed, WorldScalar scalar) {
    const ValueId result = stations_.front().emitter.AddScalar();
    predicates.push_back(result);
    if (job_.num_ranks == 1) return;
    Op op{.kind = OpKind::kCollective,
          .detail = static_cast<std::uint8_t>(CollectiveKind::kAllReduce),
          .purpose = Purpose::kScalars};
    op.group = writer_.Group({.kind = GroupRef::Kind::kWorld});
    op.lane = writer_.CommunicatorLane(op.group);
    op.step = static_cast<std::int16_t>(state_.step);
    op.block = static_cast<std::uint16_t>(scalar);
    op.size =
        writer_.Size({.what = kSlotScalar, .module = 0xffffU, .extra = op.block}, base::Bytes{8});
    writer_.Add(op, consumed, {result});
  };
  over_world(after_model,
             WorldScalar::kTokens);  // valid tokens: every module divides by the same count
  if (job_.num_ranks == 1) predicates.clear();
  std::vector<ValueId> norms;
  std::vector<ValueId> overflows;
  for (Station& station : stations_) {
    if (!station.emitter.module_trained()) continue;
    const bool fp16 =
        job_.modules[static_cast<std::size_t>(station.module)].settings.precision == DType::kFp16;
    if (fp16 && station.emitter.trained())
      overflows.push_back(station.emitter.CheckOverflow(state_));
    if (job_.optimizer.clip_gradients) norms.push_back(station.emitter.Norm(state_));
  }
  const bool any_fp16 =
      std::any_of(job_.modules.begin(), job_.modules.end(),
                  [](const Module& module) { return module.settings.precision == DType::kFp16; });
  // All agree on found_inf and on the norm before anybody may skip or scale.
  if (any_fp16) {
    if (job_.num_ranks == 1)
      predicates.insert(predicates.end(), overflows.begin(), overflows.end());
    else
      over_world(overflows, WorldScalar::kFoundInf);
  }
  if (job_.optimizer.clip_gradients && job_.modules.size() > 1 && job_.num_ranks > 1) {
    over_world(norms, WorldScalar::kNorm);
  } else {
    predicates.insert(predicates.end(), norms.begin(), norms.end());
  }
  for (Station& station : stations_) station.emitter.Optimize(state_, predicates);
  if (writer_.num_ops() > 0) writer_.Flag(writer_.num_ops() - 1, kEndsStep);
}

}  // namespace isthmus::plan
