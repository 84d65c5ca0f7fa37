#include "backend/torch/modules/attention_core.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace isthmus::backend {
namespace {

/// Scores that are held at a time, at most; one sequence's of one kv head can't be split.
constexpr std::int64_t kScoresAtOnce = std::int64_t{1} << 22U;

/// [batch, tokens, heads, d] as [batch · kv_heads, heads / kv_heads · tokens, d].
at::Tensor ByKvHead(const at::Tensor& x, std::int64_t kv_heads) {
  const std::int64_t group = x.size(2) / kv_heads;
  return x.unflatten(2, {kv_heads, group})
      .permute({0, 2, 3, 1, 4})
      .reshape({x.size(0) * kv_heads, group * x.size(1), x.size(3)});
}

/// The way back, into the shape of `like`.
at::Tensor ByToken(const at::Tensor& x, const at::Tensor& like, std::int64_t kv_heads) {
  const std::int64_t group = like.size(2) / kv_heads;
  return x.view({like.size(0), kv_heads, group, like.size(1), like.size(3)})
      .permute({0, 3, 1, 2, 4})
      .reshape(like.sizes());
}

/// log_sum of [batch, heads, queries] as [batch · kv_heads, group · queries, 1], and back.
at::Tensor SumByKvHead(const at::Tensor& log_sum, std::int64_t kv_heads) {
  const std::int64_t group = log_sum.size(1) / kv_heads;
  return log_sum.reshape({log_sum.size(0) * kv_heads, group * log_sum.size(2), 1});
}

at::Tensor Scores(const at::Tensor& q, const at::Tensor& k, const at::Tensor& blocked) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(q.size(2)));
  at::Tensor scores = q.bmm(k.transpose(1, 2)).mul_(scale);
  if (!blocked.defined()) return scores;
  scores.view({q.size(0), -1, blocked.size(0), blocked.size(1)})
      .masked_fill_(blocked, -std::numeric_limits<double>::infinity());
  return scores;
}

/// Runs `body(begin, size)` over pieces of the batch so that not too many scores are held at once.
template <typename Body>
void OverBatch(const at::Tensor& q, const at::Tensor& k, const Body& body) {
  const std::int64_t scores = std::max<std::int64_t>(q.size(1) * k.size(1), 1);
  const std::int64_t step = std::max<std::int64_t>(kScoresAtOnce / scores, 1);
  for (std::int64_t begin = 0; begin < q.size(0); begin += step) {
    body(begin, std::min(step, q.size(0) - begin));
  }
}

}  // namespace

AttentionOutput Attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                       const at::Tensor& blocked) {
  const std::int64_t kv_heads = k.size(2);
  const at::Tensor queries = ByKvHead(q, kv_heads);
  const at::Tensor keys = ByKvHead(k, kv_heads);
  const at::Tensor values = ByKvHead(v, kv_heads);
  const at::Tensor out = at::empty_like(queries);
  const at::Tensor log_sum = at::empty({queries.size(0), queries.size(1), 1}, queries.options());
  OverBatch(queries, keys, [&](std::int64_t begin, std::int64_t size) {
    const at::Tensor scores =
        Scores(queries.narrow(0, begin, size), keys.narrow(0, begin, size), blocked);
    at::Tensor most = scores.amax(-1, /*keepdim=*/true);
    most.masked_fill_(most.isinf(), 0.0);  // of a query that sees nothing
    const at::Tensor powers = scores.sub_(most).exp_();
    const at::Tensor sum = powers.sum(-1, /*keepdim=*/true);
    log_sum.narrow(0, begin, size).copy_(sum.log().add_(most));
    powers.div_(sum.clamp_min(std::numeric_limits<float>::min()));
    out.narrow(0, begin, size).copy_(powers.bmm(values.narrow(0, begin, size)));
  });
  return {ByToken(out, q, kv_heads), log_sum.view({q.size(0), q.size(2), q.size(1)})};
}

AttentionGradients AttendBackward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                  const at::Tensor& blocked, const AttentionOutput& whole,
                                  const at::Tensor& dout) {
  const std::int64_t kv_heads = k.size(2);
  const double scale = 1.0 / std::sqrt(static_cast<double>(q.size(3)));
  const at::Tensor queries = ByKvHead(q, kv_heads);
  const at::Tensor keys = ByKvHead(k, kv_heads);
  const at::Tensor values = ByKvHead(v, kv_heads);
  const at::Tensor log_sum = SumByKvHead(whole.log_sum, kv_heads);
  const at::Tensor outer = ByKvHead(dout, kv_heads);
  const at::Tensor inner = ByKvHead((dout * whole.out).sum(-1, /*keepdim=*/true), kv_heads);
  const at::Tensor dq = at::empty_like(queries);
  const at::Tensor dk = at::empty_like(keys);
  const at::Tensor dv = at::empty_like(values);
  OverBatch(queries, keys, [&](std::int64_t begin, std::int64_t size) {
    const auto piece = [&](const at::Tensor& x) { return x.narrow(0, begin, size); };
    at::Tensor powers = Scores(piece(queries), piece(keys), blocked).sub_(piece(log_sum)).exp_();
    piece(dv).copy_(powers.transpose(1, 2).bmm(piece(outer)));
    const at::Tensor dscores =
        piece(outer).bmm(piece(values).transpose(1, 2)).sub_(piece(inner)).mul_(powers).mul_(scale);
    piece(dq).copy_(dscores.bmm(piece(keys)));
    piece(dk).copy_(dscores.transpose(1, 2).bmm(piece(queries)));
  });
  return {ByToken(dq, q, kv_heads), ByToken(dk, k, kv_heads), ByToken(dv, v, kv_heads)};
}

void Merge(AttentionOutput& sum, const AttentionOutput& part, std::int64_t query_begin) {
  const std::int64_t size = part.out.size(1);
  const at::Tensor out = sum.out.narrow(1, query_begin, size);
  const at::Tensor log_sum = sum.log_sum.narrow(2, query_begin, size);
  const at::Tensor total = at::logaddexp(log_sum, part.log_sum);
  const auto weight = [&](const at::Tensor& of) {
    return (of - total).exp_().transpose(1, 2).unsqueeze(-1);
  };
  out.copy_(out * weight(log_sum) + part.out * weight(part.log_sum));
  log_sum.copy_(total);
}

}  // namespace isthmus::backend
