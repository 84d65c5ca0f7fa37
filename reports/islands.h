#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reports/figures.h"
#include "traces/trace.h"

namespace isthmus::reports {

/// How loaded encoders on ranks of their own are against the LLM's pipeline (modelling_mimo §2.6).
///
/// utilisation = compute of the encoder's busiest rank over that of the LLM's busiest rank: of a
/// microbatch, F_e + B_e over the LLM's slot. Above 1 the encoder is the pipeline's bottleneck.
/// needed FLOP/s = executed FLOP of an encoder's rank over the LLM's busy time: the rate at which
/// it would just keep up. Nothing for encoders that share ranks with the decoder. Not thread-safe.
class Islands final : public traces::TraceSink {
 public:
  void OnHeader(const traces::Header& header) override;
  void OnEvents(std::span<const traces::Event> events) override;
  void OnMemory(std::span<const traces::MemoryCounter>) override {}
  void OnTrailer(const traces::Trailer&) override {}

  std::vector<IslandFigure> figures() const;

 private:
  struct Island {
    IslandFigure figure;
    std::uint16_t module = 0;
    double flops = 0;  // executed by its busiest rank, all steps
  };

  std::vector<Island> islands_;
  std::uint16_t decoder_ = 0;
  std::vector<std::uint32_t> role_of_class_;
  std::vector<std::vector<bool>> is_model_;          // by role and op: a module's compute
  std::vector<std::vector<std::uint16_t>> modules_;  // by role and op
  std::vector<std::vector<std::int64_t>> busy_ps_;   // by module and class
};

}  // namespace isthmus::reports
