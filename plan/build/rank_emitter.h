#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/build/module_emitter.h"
#include "plan/build/placed_job.h"
#include "plan/schedule/pipeline_call.h"

namespace isthmus::plan {

/// What one rank does, before it is recognised as an instance of a role.
struct EmittedRank {
  Role role;
  SizeTable table;
};

/// Writes the program of one rank: the schedule of its placement around the emitters of its
/// modules.
///
/// One object writes one rank. Lifetime: refers to the placed job and the pool.
class RankEmitter {
 public:
  RankEmitter(const PlacedJob& placed, WorkPool& works, base::Rank rank);

  EmittedRank Emit();

 private:
  /// The tensors of one turn that wait between calls.
  struct Waiting {
    std::vector<ValueId> inputs;  // activations received or handed over
    std::optional<ValueId> output;
    std::vector<ValueId> output_gradients;
    std::vector<ValueId> input_gradients;  // for the virtual stage in front
  };
  /// A module's stage on this rank.
  struct Station {
    int module = 0;
    int stage = 0;
    int num_stages = 1;
    int num_chunks = 1;
    ModuleEmitter emitter;
    std::vector<std::vector<Waiting>> waiting;  // by chunk and microbatch

    int virtual_stage(const Turn& turn) const { return turn.chunk * num_stages + stage; }
    bool starts_module(const Turn& turn) const { return virtual_stage(turn) == 0; }
    bool ends_module(const Turn& turn) const {
      return virtual_stage(turn) + 1 == num_stages * num_chunks;
    }
    Waiting& at(const Turn& turn) {
      return waiting[static_cast<std::size_t>(turn.chunk)]
                    [static_cast<std::size_t>(turn.microbatch)];
    }
    /// Nothing flows from one step to the next but parameters and optimizer state.
    void Clear();
  };
  /// The transfers of one exchange while they are collected.
  struct Exchange {
    std::vector<Transfer> receives;
    std::vector<Transfer> sends;
    std::vector<ValueId> consumed;
    std::vector<ValueId> produced;
    Purpose purpose = Purpose::kPipeline;
    Turn turn = {};
    std::uint16_t module = 0;
  };
  enum class Way { kForward, kBackward };

  void AddStations(base::Rank rank);
  Station* StationOf(int module);
  std::string RoleName() const;

  // rank_emitter.cc: one step of each placement.
  void EmitHomogeneousStep();
  void EmitThreePhaseStep();
  void EmitNonColocatedStep();
  void FinishStep();
  void RunPipeline(Station& station, const std::vector<PipelineCall>& calls);
  /// The LLM's schedule where its stages are all there is in its pipeline.
  std::vector<PipelineCall> LlmCalls(const Station& llm) const;
  void ReloadEncoders();
  void Forward(Station& station, const Turn& turn);
  void Backward(Station& station, const Turn& turn);
  /// One gradient per edge into the LLM's first stage, in edge order.
  std::vector<ValueId> NewBoundaryGradients(const Turn& turn);
  std::vector<ValueId> LastProduced() const;

  // rank_exchange.cc: pipeline and leader-to-leader transfers.
  void RunExchange(Station& station, const PipelineCall& call);
  void Post(const Exchange& exchange);
  void SendToStage(Station& station, Exchange& exchange, Way way, const Turn& turn);
  void ReceiveFromStage(Station& station, Exchange& exchange, Way way, const Turn& turn);
  void SendOverEdge(Station& station, Exchange& exchange, int edge, Way way, const Turn& turn);
  void ReceiveOverEdge(Exchange& exchange, int edge, Way way, int microbatch,
                       std::vector<ValueId>& received);
  std::vector<int> EdgesOf(const Station& station, Way way) const;
  const RankBoundary& BoundaryOf(int edge, std::int32_t microbatch) const;
  /// What SlotKey::microbatch is in names of sizes of what crosses an edge.
  std::int32_t SizeMicrobatch(int edge, std::int32_t microbatch) const {
    return placed_.microbatches_differ(edge) ? microbatch : -1;
  }
  /// Index of a message among all of the rank's boundary peers: see Program::Peer.
  static std::uint16_t BoundaryPeerIndex(const RankBoundary& here, Way way, bool sends,
                                         std::size_t message);

  // rank_boundary.cc: collectives of boundaries.
  /// Runs the collective and select steps of one way; `value` is what the rank holds, if anything.
  /// Returns what it holds after them.
  std::vector<ValueId> RunBoundarySteps(int edge, Way way, std::vector<ValueId> held,
                                        int microbatch);
  Storage BoundaryStorage(int edge, Way way, int microbatch, SizeId size) const;
  base::Bytes BoundaryBytes(int edge, std::int64_t tokens) const;

  const PlacedJob& placed_;
  const Job& job_;
  WorkPool& works_;
  base::Rank rank_;
  RoleWriter writer_;
  std::vector<Station> stations_;
  StepState state_;
  /// What the pipeline's last forward or backward made: an exchange that only receives is not
  /// launched before it.
  std::vector<ValueId> turn_end_;
  std::map<int, std::vector<ValueId>> window_;             // by edge: the window tensor, LLM side
  std::map<int, std::optional<ValueId>> window_gradient_;  // by edge: its gradient so far
};

}  // namespace isthmus::plan
