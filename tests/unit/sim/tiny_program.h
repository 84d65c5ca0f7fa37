#pragma once

#include <cstdint>
#include <vector>

#include "plan/build/role_writer.h"
#include "plan/program/program.h"
#include "sim/cost/collective_model.h"
#include "sim/cost/compute_model.h"
#include "sim/engine/engine.h"
#include "sim/engine/lower.h"
#include "traces/trace.h"

/// Programs of a few ops with durations that are given, not modelled.
namespace isthmus::sim {

/// A kernel that moves n bytes takes n picoseconds; other kernels can't be priced.
class GivenCompute : public ComputeModel {
 public:
  base::Seconds Time(const plan::Kernel& kernel) const override;
  base::Seconds LaunchGap(const plan::Kernel&) const override { return base::Seconds{0}; }
};

/// A collective, message or copy of n bytes takes n picoseconds.
class GivenNetwork : public CollectiveModel {
 public:
  base::Seconds Time(plan::CollectiveKind, base::Bytes size,
                     const topology::GroupLocality& group) const override;
  base::Seconds P2P(base::Bytes size, const topology::Route&) const override;
  base::Seconds Copy(base::Bytes size, plan::CopyDirection, const topology::Route&) const override;
};

/// A work of one kernel that takes `duration_ps`.
plan::Work GivenWork(std::int64_t duration_ps, std::int64_t transient_bytes = 0);

struct TinyRun {
  Lowered lowered;
  EngineResult result;
  std::vector<traces::Event> events;  // as recorded
};

/// Lowers `program` with the given durations onto one node and runs it. What comes back refers to
/// `program`.
TinyRun RunGiven(const plan::Program& program, EngineOptions options = {}, bool fold = false,
                 const CollectiveModel& network = GivenNetwork(), const HostModel& host = {});

/// What else is said about an op.
struct Also {
  std::vector<plan::ValueId> consumes = {};
  std::vector<plan::ValueId> produces = {};
  std::uint8_t flags = 0;
  int step = 0;
  std::int64_t transient_bytes = 0;
  int eager_layers = 0;
  plan::AxisSet matched_over = {};  // empty: not matched
};

/// A message to (or from) the rank `delta` pipeline stages away.
struct Message {
  bool sends = true;
  int delta = 1;
  plan::ValueId value = 0;
  std::int64_t bytes = 0;
};

/// Writes one role, one op a call; times in picoseconds, sizes in bytes.
class RoleSketch {
 public:
  explicit RoleSketch(plan::Program& program) : program_(program), writer_("sketch") {}

  plan::ValueId NewValue(const plan::Storage& storage = {}) { return writer_.AddValue(storage); }
  plan::ValueId NextVersion(plan::ValueId value) { return writer_.NextVersion(value); }
  plan::SizeId Size(std::int64_t bytes);

  std::uint32_t Compute(std::int64_t duration_ps, const Also& also = {});
  std::uint32_t AllReduce(std::int64_t duration_ps, plan::AxisSet axes, const Also& also = {});
  std::uint32_t Copy(std::int64_t duration_ps, plan::CopyDirection direction,
                     const Also& also = {});
  std::uint32_t Optimizer(std::int64_t duration_ps, const Also& also = {});

  std::uint32_t Exchange(const std::vector<Message>& messages, const Also& also = {});

  /// Adds the role to the program and gives it to `ranks`.
  void Give(const std::vector<int>& ranks);

 private:
  std::uint32_t WorkSlot(std::int64_t duration_ps, std::int64_t transient_bytes);
  std::uint32_t Add(plan::Op op, const Also& also,
                    const std::vector<plan::Transfer>& transfers = {});

  plan::Program& program_;
  plan::RoleWriter writer_;
  std::uint32_t next_key_ = 0;
};

/// A program of one module laid out as said, without roles yet.
plan::Program EmptyProgram(const plan::Layout& layout, int num_steps = 1);

}  // namespace isthmus::sim
