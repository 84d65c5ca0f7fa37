#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/model/kernel.h"
#include "sim/cost/gloo_model.h"
#include "traces/measured_row.h"

/// What a measured row is of, in the words of a program.
namespace isthmus::sim {

struct MeasuredShape {
  std::vector<plan::Kernel> kernels;  // one
  double work = 0;                    // FLOP, or bytes
  const char* unit = "";              // of a rate: FLOP/s, or B/s
  double launches = 1;
};

/// Of the tables gemm.<dtype>, attention.<dtype>.<direction>.<mask> and memory.<class>; nothing for
/// others. An attention row is of kAttentionHeads heads of one sequence. Throws base::Error if the
/// point is not one of the table.
std::optional<MeasuredShape> ParseKernel(const traces::MeasuredRow& row);

inline constexpr std::int64_t kAttentionHeads = 4;

/// Ranks of a table gloo.<kind>.ranks_<n> or staged.<kind>.ranks_<n>; 2 of gloo.p2p; nothing for
/// others.
std::optional<int> RanksOf(const std::string& table);

/// Bytes of a row with the point b<bytes>. Throws base::Error if it is another.
std::int64_t SizeOf(const traces::MeasuredRow& row);

/// Time and core time that the model gives the row's collective or message.
std::pair<double, double> PriceCommunication(const GlooModel& gloo, const traces::MeasuredRow& row,
                                             int num_ranks);

}  // namespace isthmus::sim
