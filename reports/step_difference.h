#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reports/figures.h"

/// What a change of a scenario does to its step, and through what.
namespace isthmus::reports {

/// What was changed, for people.
struct ChangedValue {
  std::string key;
  std::string before;  // empty: there was no single value
  std::string after;
};

/// One thing that critical paths spend time on.
///
/// Its key is category, kind, module, op and link kind. The times are sums over the pieces of each
/// path with that key; of different programs, ops whose names are equal but for microbatch, block
/// and sizes are compared.
struct DifferenceTerm {
  std::string category;  // a traces::Category's text, or "straggler"
  std::string kind;      // as PathSegment's
  std::string module;
  std::string op;         // without microbatch, block and sizes
  std::string link_kind;  // "nic"; "nic -> pcie" where that changed; empty where no bytes move or
                          // the link isn't known
  std::string link;  // the one that most of the changed time (else of the base's) is due to, if
                     // it is one
  std::int32_t rank = 0;  // that most of that time is on
  std::int64_t base_ps = 0;
  std::int64_t changed_ps = 0;
  std::int64_t base_pieces = 0;  // intervals on the path
  std::int64_t changed_pieces = 0;

  std::int64_t difference_ps() const { return changed_ps - base_ps; }
};

/// The difference of two steps along their critical paths.
///
/// A critical path is a chain of intervals that cover the step without gap or overlap, each on the
/// account of an op or of the wait before one. So is the path of the changed step, which may be
/// another chain. Both are summed by the same key; the differences of the sums are the terms.
///
/// Invariant: base_ps and changed_ps of all terms sum to the windows' lengths, and so the
/// differences to that of the windows, to the picosecond. |difference| of terms decreases.
struct StepDifference {
  std::string network;  // "nccl", "flow"
  std::vector<ChangedValue> changes;
  Figures base;  // with their paths
  Figures changed;
  bool same_program = true;  // by hash
  std::vector<DifferenceTerm> terms;
  std::size_t num_named = 0;  // of the terms; those behind it are "other"
  std::vector<std::string> notes;

  std::int64_t difference_ps() const { return changed.window_ps - base.window_ps; }
  /// Sum of what is behind the named terms, but for names.
  DifferenceTerm Other() const;
};

/// Takes two steps apart. `max_other` is what may be left unnamed: the |differences| of "other" sum
/// to no more than that share of the steps' difference.
///
/// Needs figures with their whole paths. Cost: O(pieces · log).
StepDifference TakeApart(Figures base, Figures changed, double max_other = 0.05);

}  // namespace isthmus::reports
