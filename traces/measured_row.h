#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::traces {

/// One thing that a machine was measured to take: how `isthmus calibrate`'s ranks tell what they
/// found. Tables and points are named as the keys of profiles (profiles/README.md).
struct MeasuredRow {
  std::string table;      ///< "gemm.fp32", "gloo.all_reduce.ranks_4"
  std::string point;      ///< "m64_n256_k64", "b65536"; empty: the table has one value
  bool held_out = false;  ///< not for fitting: what fits are judged by
  double value = 0;       ///< seconds, bytes or a plain number, by the table
  double core_s = 0;      ///< processor time of one rank's threads, where it differs from value
  int busy_ranks = 0;     ///< communication: ranks that shared the cores meanwhile
  double spread = 0;      ///< median relative distance of the samples
  std::int64_t num_samples = 0;

  friend bool operator==(const MeasuredRow&, const MeasuredRow&) = default;
};

/// A header line, then a line per row; numbers to the last digit.
std::string ToCsv(const std::vector<MeasuredRow>& rows);

/// The rows of such a text. Throws base::Error naming `label` and the line that is none.
std::vector<MeasuredRow> ParseMeasuredRows(std::string_view text, const std::string& label);

}  // namespace isthmus::traces
