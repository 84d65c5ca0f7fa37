#pragma once

#include "base/units.h"
#include "plan/model/kernel.h"
#include "profiles/profile.h"
#include "sim/cost/collective_model.h"
#include "sim/cost/compute_model.h"
#include "topology/locality.h"

namespace isthmus::sim {

/// What a segment costs on an idle network.
///
/// total = host + compute + exposed. `compute` is the kernels' time including
/// what communication beside them slows them by; `communication` is the
/// collective's own time (all exchanges of a ring), of which `exposed` is not
/// hidden.
struct SegmentCost {
  base::Seconds total{0};
  base::Seconds compute{0};
  base::Seconds communication{0};
  base::Seconds exposed{0};
  base::Seconds host{0};  ///< launch gaps
  base::Seconds core{0};  ///< of the communication, on the host's cores
};

/// Times of segments: kernels, a collective, or both side by side under the
/// rules of plan::Overlap.
///
/// g: sum of the kernels' times, c: the collective's time, n: ranks of its group, SMs: of the
/// device.
///
///     kNone        g + c
///
///     kBulk        max(g, c) + (contention/SMs)·min(g, c)
///
///     kGatherIn    g' + max(0, c - g'(n-1)/n) + (contention/SMs)·min(c, g')
///
///     kScatterOut  g' + c/chunks + max(0, (c - g')·(chunks-1)/chunks)
///
///     kRing        sum over i < steps of max(kernel[i], exchange) + kernel[steps]
///
/// kGatherIn: g' is the mean of the whole product and of n products of m/n rows; the whole only, if
/// a chunk has fewer than min_chunk_rows. kScatterOut: g' = g·SMs/(SMs - reserved) +
/// (chunks-1)·chunk_latency, the WHOLE product runs on fewer SMs. kRing: kernels called through the
/// variable-length API take 1/efficiency of their time.
/// Only matrix products are chunked or slowed by reserved SMs; other kernels of
/// the segment count in full. Without a collective, or with a group of one,
/// every rule is g. Source: `overlap.*` of the profile, modelled on user-buffer
/// overlap of Transformer Engine; all assumed, none fitted. Pinned by
/// tests/unit/sim/overlap_test.cc; docs/models/overlap.md.
///
/// Lifetime: the models must outlive it. Thread-safe: immutable.
class SegmentModel {
 public:
  SegmentModel(const profiles::Profile& profile, const ComputeModel& compute,
               const CollectiveModel& collectives);
  /// Of a host that waits for every collective: nothing runs beside anything, each rule is g + c (a
  /// ring g and all its exchanges).
  SegmentModel(const ComputeModel& compute, const CollectiveModel& collectives)
      : compute_(compute), collectives_(collectives), is_serial_(true) {}

  /// `group` is the locality of the segment's collective; it is not looked at
  /// without one.
  SegmentCost Cost(const plan::Segment& segment, const topology::GroupLocality& group) const;

  /// Share of the SMs that kernels do without while gradients or parameters are synchronised
  /// beside them: contention/SMs.
  double gradient_sync_share() const { return gradient_sync_contention_; }

 private:
  struct Kernels {
    double products = 0;
    double others = 0;
    double sum() const { return products + others; }
  };

  Kernels TimesOf(const plan::Segment& segment) const;
  double ChunkedProducts(const plan::Segment& segment, int parts) const;
  void GatherIn(const plan::Segment& segment, int num_ranks, double c, SegmentCost& cost) const;
  void ScatterOut(const Kernels& kernels, double c, SegmentCost& cost) const;
  void Ring(const plan::Segment& segment, double exchange, SegmentCost& cost) const;

  const ComputeModel& compute_;
  const CollectiveModel& collectives_;
  bool is_serial_ = false;
  double gather_contention_ = 0;  // shares of the SMs
  double bulk_contention_ = 0;
  double gradient_sync_contention_ = 0;
  double ring_efficiency_ = 1;   // of steps called through the variable-length API
  double scatter_slowdown_ = 0;  // SMs/(SMs - reserved)
  double scatter_chunks_ = 0;
  double scatter_chunk_latency_ = 0;
  std::int64_t min_chunk_rows_ = 0;
};

}  // namespace isthmus::sim
