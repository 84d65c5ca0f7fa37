#pragma once

#include <string>
#include <vector>

/// Out-of-memory verdicts beside what happened.
namespace isthmus::studies {

struct RowResult;

/// How often a verdict of does_not_fit was right, over rows of which it is known whether they ran:
/// rows that are marked out of memory, and rows with a step time. Borderline counts as fits.
struct VerdictCounts {
  int out_of_memory = 0;  ///< rows that ran out of memory
  int found = 0;          ///< of these, called does_not_fit
  int ran = 0;            ///< rows that ran
  int refused = 0;        ///< of these, called does_not_fit

  double precision() const;  ///< of the rows called does_not_fit, those that did run out
  double recall() const;     ///< of the rows that ran out, those called so
  double fits_kept() const;  ///< of the rows that ran, those not called so
};

struct VerdictScore {
  std::string framework;
  VerdictCounts scored;
  VerdictCounts strict;  ///< without settings that were chosen after seeing rows
};

/// One score for each framework of which some row ran out of memory, in the order of the rows.
std::vector<VerdictScore> ScoreVerdicts(const std::vector<RowResult>& rows);

}  // namespace isthmus::studies
