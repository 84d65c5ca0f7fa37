#pragma once

#include <utility>
#include <vector>

#include "plan/model/internal/rank_shape.h"
#include "plan/model/kernel.h"

namespace isthmus::plan::internal {

/// Which gradients one op computes: a combined backward both, a split one of the two.
struct Pass {
  bool input = false;
  bool weight = false;
};

/// A list of segments under construction. Leaves out what moves and computes nothing.
class SegmentList {
 public:
  void Compute(const char* name, std::vector<Kernel> kernels);
  void Collective(const char* name, const InnerCollective& collective);
  /// Kernels and a collective beside each other, one segment.
  void Beside(const char* name, std::vector<Kernel> kernels, const InnerCollective& collective,
              Overlap overlap);

  std::vector<Segment> Take() { return std::move(segments_); }
  bool empty() const { return segments_.empty(); }

 private:
  std::vector<Segment> segments_;
};

/// Static names of a tensor-parallel linear layer's segments.
struct LinearNames {
  const char* forward;
  const char* forward_collective;  // gather of x (column) or scatter of y (row)
  const char* dgrad;
  const char* dgrad_collective;  // scatter of dx (column) or gather of dy (row)
  const char* wgrad;
  const char* wgrad_collective;  // gather of x again (column only)
};

/// A linear layer over `tokens` tokens on one rank; `in` and `out` after division by tp.
struct Linear {
  LinearNames names;
  std::int64_t tokens = 0;
  std::int64_t in = 0;
  std::int64_t out = 0;
  DType dtype = DType::kBf16;
  bool chunked = true;  // user buffers feed it: layers yes, head and projector no
};

/// Column-parallel: out is split. Forward gathers x under sequence parallelism; the backward
/// gathers x again beside dgrad (for wgrad) and scatters dx beside wgrad, or all-reduces dx without
/// it.
void AddColumnForward(const RankShape& rank, const Linear& linear, SegmentList& list);
void AddColumnBackward(const RankShape& rank, const Linear& linear, Pass pass, SegmentList& list);
/// Row-parallel: in is split. Forward scatters (or all-reduces) y; the backward gathers dy before
/// dgrad. A separate weight pass keeps the gathered dy.
void AddRowForward(const RankShape& rank, const Linear& linear, SegmentList& list);
void AddRowBackward(const RankShape& rank, const Linear& linear, Pass pass, SegmentList& list);

/// One memory-bound kernel (or `launches`) over `bytes`.
Kernel Moves(MemoryClass memory_class, std::int64_t bytes, int launches = 1);
/// GEMMs of a linear layer.
Kernel ForwardGemm(const RankShape& rank, const Linear& linear);
Kernel InputGemm(const RankShape& rank, const Linear& linear);
/// The weight gradient, added to the main gradient: by its product (which then reads and writes g
/// bytes an element), or where the code doesn't fuse that by a kernel that reads the product's 16
/// bit.
std::vector<Kernel> WeightKernels(const RankShape& rank, const Linear& linear);
/// A collective over tp with the whole buffer of tokens · width elements.
InnerCollective OverTp(CollectiveKind kind, std::int64_t elements, std::int64_t element_bytes);

}  // namespace isthmus::plan::internal
