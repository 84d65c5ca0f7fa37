#include "backend/torch/modules/token_layout.h"

#include <algorithm>
#include <numeric>

namespace isthmus::backend {

std::vector<std::int64_t> TokenLayout::PositionsOf(int cp_rank) const {
  std::vector<std::int64_t> positions(static_cast<std::size_t>(local()));
  if (!causal || cp == 1) {
    std::iota(positions.begin(), positions.end(), cp_rank * local());
    return positions;
  }
  const std::int64_t chunk = local() / 2;
  const auto middle = positions.begin() + chunk;
  std::iota(positions.begin(), middle, cp_rank * chunk);
  std::iota(middle, positions.end(), (2 * cp - 1 - cp_rank) * chunk);
  return positions;
}

std::vector<std::int64_t> TokenLayout::AllPositions() const {
  std::vector<std::int64_t> all;
  for (int rank = 0; rank < cp; ++rank) {
    const std::vector<std::int64_t> positions = PositionsOf(rank);
    all.insert(all.end(), positions.begin(), positions.end());
  }
  return all;
}

VisiblePart FindVisible(const TokenLayout& layout, const std::vector<std::int64_t>& queries,
                        const std::vector<std::int64_t>& keys, at::Device device) {
  const at::Tensor query = ToTensor(queries, at::kCPU).unsqueeze(1);
  const at::Tensor key = ToTensor(keys, at::kCPU).unsqueeze(0);
  at::Tensor seen = query.floor_divide(layout.span).eq(key.floor_divide(layout.span));
  if (layout.causal) seen = seen.logical_and(key.le(query));
  VisiblePart part;
  const auto bounds = [](const at::Tensor& any, std::int64_t& begin, std::int64_t& size) {
    const at::Tensor found = any.nonzero();
    if (found.size(0) == 0) return;
    begin = found.min().item<std::int64_t>();
    size = found.max().item<std::int64_t>() + 1 - begin;
  };
  if (queries.empty() || keys.empty()) return part;
  bounds(seen.any(1), part.query_begin, part.num_queries);
  bounds(seen.any(0), part.key_begin, part.num_keys);
  const at::Tensor blocked = seen.narrow(0, part.query_begin, part.num_queries)
                                 .narrow(1, part.key_begin, part.num_keys)
                                 .logical_not();
  if (blocked.any().item<bool>()) part.blocked = blocked.to(device);
  return part;
}

at::Tensor ToTensor(const std::vector<std::int64_t>& values, at::Device device) {
  return at::tensor(values, at::TensorOptions().dtype(at::kLong)).to(device);
}

}  // namespace isthmus::backend
