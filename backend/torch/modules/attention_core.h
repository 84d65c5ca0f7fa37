#pragma once

#include <ATen/ATen.h>

#include "backend/torch/modules/token_layout.h"

/// Attention of blocks of queries to blocks of keys, softmax(q·kᵀ/√d)·v, and its gradients, without
/// keeping the probabilities: they are rebuilt from the log of the softmax's sum (as
/// FlashAttention, Dao et al. 2022, does it). Blocks of one sequence may be merged in any order.
///
/// Shapes: q, out and their gradients [batch, queries, heads, d], k and v [batch, keys, kv_heads,
/// d], all in the type of the statistics; heads h and kv heads h / (heads / kv_heads) belong
/// together. Nothing is recorded.
namespace isthmus::backend {

struct AttentionOutput {
  at::Tensor out;
  at::Tensor log_sum;  // [batch, heads, queries]; −∞ where a query sees no key
};

struct AttentionGradients {
  at::Tensor dq, dk, dv;
};

AttentionOutput Attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                       const at::Tensor& blocked);

/// `whole`: output and log of the sum over ALL keys that the queries see, not just this block's.
AttentionGradients AttendBackward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                  const at::Tensor& blocked, const AttentionOutput& whole,
                                  const at::Tensor& dout);

/// Adds the output over further keys, of the queries from `query_begin` on, to `sum`.
void Merge(AttentionOutput& sum, const AttentionOutput& part, std::int64_t query_begin);

}  // namespace isthmus::backend
