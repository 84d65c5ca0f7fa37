#pragma once

#include "base/units.h"
#include "plan/model/kernel.h"
#include "plan/program/op.h"
#include "topology/locality.h"
#include "topology/route.h"

namespace isthmus::sim {

/// How long communication takes on an otherwise idle network, from the moment
/// its last participant is there.
///
/// Three models: NcclModel and GlooModel (what was measured) and WireModel (what
/// the links allow, a lower bound of it). Implementations are immutable and
/// thread-safe.
/// No bytes, or a group of one, take 0 s. Sizes follow nccl-tests: all-reduce,
/// broadcast, reduce: the buffer; all-gather, reduce-scatter: the whole
/// (gathered) buffer; all-to-all: what one rank holds; ring exchange: what one
/// rank sends in one exchange.
class CollectiveModel {
 public:
  virtual ~CollectiveModel() = default;

  /// One collective; of a kRingExchange one exchange.
  virtual base::Seconds Time(plan::CollectiveKind kind, base::Bytes size,
                             const topology::GroupLocality& group) const = 0;

  /// A message over a route between two GPUs.
  virtual base::Seconds P2P(base::Bytes size, const topology::Route& route) const = 0;

  /// A copy between a GPU and its host's memory.
  virtual base::Seconds Copy(base::Bytes size, plan::CopyDirection direction,
                             const topology::Route& route) const = 0;

  /// The part of Time() and P2P() for which a core of each member's host is
  /// busy with copies and reductions: ranks that share a host's cores compute
  /// less meanwhile. 0 where a network library leaves the cores alone.
  virtual base::Seconds CoreTime(plan::CollectiveKind /*kind*/, base::Bytes /*size*/,
                                 const topology::GroupLocality& /*group*/) const {
    return base::Seconds(0);
  }
  virtual base::Seconds CoreTimeOfP2P(base::Bytes /*size*/) const { return base::Seconds(0); }
};

}  // namespace isthmus::sim
