#pragma once

#include <string>
#include <vector>

/// A module's layout: degrees and axis order ("what"), before it is laid over ranks ("where").
namespace isthmus::plan {

/// Which axis varies slower, dp or pp. Both are in use in Megatron-LM (reference §6.1).
enum class AxisOrder {
  kTpCpDpPp,  // the ranks of a pipeline stage are consecutive
  kTpCpPpDp,  // the stages of one data-parallel copy are consecutive
};

/// Parallel degrees of one module. All degrees are ≥ 1; num_ranks() is their product.
struct Layout {
  int tp = 1;
  int cp = 1;
  int pp = 1;
  int vpp = 1;  // model chunks (virtual stages) per rank; > 1 is interleaved 1F1B
  int dp = 1;
  int ep = 1;
  int etp = 1;
  AxisOrder order = AxisOrder::kTpCpDpPp;
  int first_rank = 0;
  /// Layers of each virtual stage (pp · vpp of them), first to last; empty: as even as can be, the
  /// first stages take the rest, but where two layers more would divide, the ends have one less.
  std::vector<int> stage_layers = {};

  int num_ranks() const { return tp * cp * pp * dp; }
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// "TP8 CP1 PP2 DP16" (CP left out when 1, VPP and EP only when > 1).
std::string ToText(const Layout& layout);

}  // namespace isthmus::plan
