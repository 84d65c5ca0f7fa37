#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace isthmus::sim {

/// Shares links among the flows that are on them, max-min fair, and says when each is over.
///
/// A flow moves bytes over all its links at once, at one rate; no flow can be given more without
/// taking it from one that has no more than itself. Links have no latency: who starts a flow has
/// paid it (docs/models/flow.md).
///
/// Links and flows are numbered by the caller. Times are whole picoseconds and never decrease from
/// call to call; before anything starts at a time, all that ends by then has been taken. Rates are
/// rational, so ends are rounded to the nearest picosecond; the solver goes on from the exact ones.
/// Not thread-safe.
class FlowSolver {
 public:
  static constexpr double kMostBytes = 1e15;

  virtual ~FlowSolver() = default;

  /// The next link: number 0, 1, …. May be called at any time.
  virtual void AddLink(double bytes_per_second) = 0;
  /// Starts a flow of more than 0 and at most kMostBytes. `links` is not empty; a link that it
  /// names k times is taken k times over, as by a flow that stands for k of its kind.
  virtual void Start(std::int64_t now_ps, std::uint32_t flow, std::span<const std::uint32_t> links,
                     double bytes) = 0;
  /// When the next flow ends if nothing more starts, INT64_MAX if past that; absent if there is
  /// none.
  virtual std::optional<std::int64_t> NextEnd() = 0;
  /// Appends the flows that end by `now_ps`, which NextEnd() must not precede, ascending.
  virtual void TakeEnded(std::int64_t now_ps, std::vector<std::uint32_t>& ended) = 0;
};

/// SimGrid's flow-level network (3.32, model CM02 without its TCP terms), in a library of its own
/// that is loaded on the first call: neither `isthmus` nor a run without flows links SimGrid.
///
/// At most one at a time in a process; what earlier ones did doesn't count. Throws base::IoError if
/// the library can't be loaded.
std::unique_ptr<FlowSolver> LoadFlowSolver();

/// What the library exports, under this name.
inline constexpr const char* kMakeFlowSolver = "isthmus_make_flow_solver";
using MakeFlowSolverFunction = FlowSolver*();

}  // namespace isthmus::sim
