#pragma once

#include <cstddef>

#include "traces/internal/block.h"
#include "traces/trace.h"

namespace isthmus::traces::internal {

/// Finds what events name, and whether there is such a thing: every number in a trace that is an
/// index of something can be wrong in a file, and is a mistake of ours when a sink receives it.
///
/// Lifetime: the header must outlive the index.
/// Cost: the constructor is O(1), DefectOf(header) reads the whole header, the rest are O(1).
class TraceIndex {
 public:
  explicit TraceIndex(const Header& header) : header_(header) {}

  /// What is wrong with the header, in words.
  Defect DefectOfHeader() const;
  /// Needs a header without defect.
  Defect DefectOf(const Event& event) const;
  Defect DefectOf(const MemoryCounter& counter) const;
  Defect DefectOf(const Trailer& trailer) const;

  const RankClass& ClassOf(const Event& event) const { return header_.classes[event.rank_class]; }
  const RoleRecord& RoleOf(const Event& event) const { return header_.roles[ClassOf(event).role]; }
  const OpRecord& OpOf(const Event& event) const { return RoleOf(event).ops[event.op]; }
  /// What an inner event of an op without transfers is: the kernels or the collective of a piece.
  PieceRecord PieceOf(const Event& event) const;
  std::size_t num_classes() const { return header_.classes.size(); }

 private:
  Defect DefectOfOp(const RoleRecord& role, const OpRecord& op) const;
  Defect DefectOfClass(const RankClass& rank_class, std::size_t num_peers) const;

  const Header& header_;
};

/// Whether the op's inner events are transfers rather than pieces of a block.
inline bool HasTransfers(const OpRecord& op) { return !op.transfers.empty(); }

}  // namespace isthmus::traces::internal
