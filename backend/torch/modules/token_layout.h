#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace isthmus::backend {

/// Which tokens the ranks of a cp group hold of one call, flattened (sequence, position), and which
/// of them attend to each other.
///
/// Decoder: sequences are samples; each is cut into 2·cp chunks of which cp rank r holds r and
/// 2·cp − 1 − r, so that causal attention is the same work everywhere. Encoders: one sequence, the
/// lane's tokens, in cp slices. Spans (documents, images, clips) cut every sequence from its front;
/// the last one may be shorter.
struct TokenLayout {
  std::int64_t num_sequences = 0;
  std::int64_t sequence = 0;  // tokens of one, all cp ranks together
  std::int64_t span = 0;      // tokens that attend to each other
  int cp = 1;
  bool causal = true;  // decoder

  /// Tokens of a sequence, and of the call, on one rank.
  std::int64_t local() const { return sequence / cp; }
  std::int64_t num_tokens() const { return num_sequences * local(); }
  /// Positions within their sequence of the tokens a cp rank holds of it; all ranks, one after the
  /// other.
  std::vector<std::int64_t> PositionsOf(int cp_rank) const;
  std::vector<std::int64_t> AllPositions() const;
};

/// The part of a block of queries × keys in which any query sees any key, and where in it none
/// does.
struct VisiblePart {
  std::int64_t query_begin = 0;
  std::int64_t num_queries = 0;  // 0: nothing is seen
  std::int64_t key_begin = 0;
  std::int64_t num_keys = 0;
  at::Tensor blocked;  // [queries, keys] of the part, true: not seen; undefined: all is seen
};

/// Queries see keys of their own span, in causal layouts those that don't come later. Positions are
/// those within a sequence.
VisiblePart FindVisible(const TokenLayout& layout, const std::vector<std::int64_t>& queries,
                        const std::vector<std::int64_t>& keys, at::Device device);

/// A vector as an int64 tensor on a device.
at::Tensor ToTensor(const std::vector<std::int64_t>& values, at::Device device);

}  // namespace isthmus::backend
