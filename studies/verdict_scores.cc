#include "studies/verdict_scores.h"

#include <algorithm>

#include "studies/validate.h"

namespace isthmus::studies {
namespace {

double Share(int part, int whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

void Count(bool out_of_memory, const std::string& verdict, VerdictCounts& counts) {
  const bool called = verdict == "does_not_fit";
  (out_of_memory ? counts.out_of_memory : counts.ran) += 1;
  if (called) (out_of_memory ? counts.found : counts.refused) += 1;
}

}  // namespace

double VerdictCounts::precision() const { return Share(found, found + refused); }
double VerdictCounts::recall() const { return Share(found, out_of_memory); }
double VerdictCounts::fits_kept() const { return Share(ran - refused, ran); }

std::vector<VerdictScore> ScoreVerdicts(const std::vector<RowResult>& rows) {
  std::vector<VerdictScore> scores;
  for (const RowResult& row : rows) {
    if (!row.is_predicted || row.verdict.empty()) continue;
    const bool is_known = row.run.ran_out_of_memory || row.run.measured_step_time_s;
    if (!is_known) continue;
    auto score = std::ranges::find(scores, row.run.framework, &VerdictScore::framework);
    if (score == scores.end()) {
      scores.push_back({.framework = row.run.framework});
      score = scores.end() - 1;
    }
    Count(row.run.ran_out_of_memory, row.verdict, score->scored);
    Count(row.run.ran_out_of_memory, row.strict_verdict.empty() ? row.verdict : row.strict_verdict,
          score->strict);
  }
  std::erase_if(scores, [](const VerdictScore& score) { return score.scored.out_of_memory == 0; });
  return scores;
}

}  // namespace isthmus::studies
