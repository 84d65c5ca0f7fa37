#include <utility>
#include <vector>

#include "plan/model/internal/pieces.h"

namespace isthmus::plan::internal {
namespace {

// Sequences of one length that attend within themselves.
struct Spans {
  std::int64_t count = 0;
  std::int64_t length = 0;
};

// The group's tokens cut into spans; what is left over is one shorter span.
std::vector<Spans> CutIntoSpans(const RankShape& rank) {
  const std::int64_t all = rank.tokens * rank.cp;
  std::vector<Spans> spans;
  if (all >= rank.span) spans.push_back({all / rank.span, rank.span});
  if (all % rank.span != 0) spans.push_back({1, all % rank.span});
  return spans;
}

bool IsVariableLength(const RankShape& rank) {
  return rank.cp > 1 && rank.settings->cp_attention == CpAttention::kVariableLength;
}

Attention Core(const RankShape& rank, const Spans& spans, bool backward) {
  Attention attention;
  attention.num_sequences = spans.count;
  attention.query_len = CeilDivide(spans.length, rank.cp);
  attention.kv_len = attention.query_len;
  attention.heads = rank.heads();
  attention.kv_heads = rank.kv_heads();
  attention.head_dim = rank.transformer->head_dim;
  attention.causal = rank.decoder;
  attention.backward = backward;
  attention.kernel = rank.settings->attention;
  attention.dtype = ActivationType(*rank.settings);
  attention.in_fp8_run = rank.in_fp8_run();
  attention.variable_length = IsVariableLength(rank);
  return attention;
}

// Causal blocks are dealt in zigzag, so every rank has the same work: its own L × L causal block,
// then against each of the other cp - 1 blocks half of L × L.
std::vector<Kernel> RingSteps(const RankShape& rank, const Spans& spans, bool backward) {
  const Attention own = Core(rank, spans, backward);
  std::vector<Kernel> steps{own};
  Attention other = own;
  other.causal = false;
  if (own.causal) other.kv_len = CeilDivide(own.kv_len, 2);
  for (int step = 1; step < rank.cp; ++step) steps.emplace_back(other);
  return steps;
}

struct RingNames {
  const char* ring;
  const char* merge;
};

RingNames NamesOf(AttentionPass pass) {
  switch (pass) {
    case AttentionPass::kForward:
      return {"attention ring", "attention merge"};
    case AttentionPass::kRecompute:
      return {"attention ring recompute", "attention merge recompute"};
    case AttentionPass::kBackward:
      break;
  }
  return {"attention ring backward", "attention merge backward"};
}

// modelling_runs §4: what joins the steps' partial outputs (forward) and gradients (backward).
Kernel MergeTraffic(const RankShape& rank, bool backward) {
  const std::int64_t cp = rank.cp;
  const std::int64_t bytes =
      backward ? 6 * cp * rank.tokens * rank.qkv() : (cp + 1) * 4 * rank.tokens * rank.query;
  return Moves(MemoryClass::kElementwise, rank.Widen(bytes), (backward ? 3 : 2) * rank.cp);
}

void AddRing(const RankShape& rank, AttentionPass pass, SegmentList& list) {
  const bool backward = pass == AttentionPass::kBackward;
  const RingNames names = NamesOf(pass);
  const std::int64_t all = rank.tokens * rank.cp;
  for (const Spans& spans : CutIntoSpans(rank)) {
    // K and V of the rank's own tokens of these spans; the backward passes their gradients along.
    const std::int64_t own_tokens = CeilDivide(rank.tokens * spans.count * spans.length, all);
    const base::Bytes block(2 * own_tokens * rank.kv * rank.element_bytes);
    InnerCollective ring{CollectiveKind::kRingExchange, kCp, block * (backward ? 2 : 1),
                         rank.cp - 1};
    list.Beside(names.ring, RingSteps(rank, spans, backward), ring, Overlap::kRing);
    if (backward) {
      // The gradients of K and V are one hop from home after the last step.
      ring.bytes = block;
      ring.steps = 1;
      list.Collective("attention ring return", ring);
    }
  }
  list.Compute(names.merge, {MergeTraffic(rank, backward)});
}

struct ExchangeNames {
  const char* before;
  const char* attention;
  const char* behind;
};

ExchangeNames ExchangeNamesOf(AttentionPass pass) {
  switch (pass) {
    case AttentionPass::kForward:
      return {"attention head exchange", "attention", "attention output exchange"};
    case AttentionPass::kRecompute:
      return {"attention head exchange recompute", "attention recompute",
              "attention output exchange recompute"};
    case AttentionPass::kBackward:
      break;
  }
  return {"attention output exchange backward", "attention backward",
          "attention head exchange backward"};
}

// Ranks exchange their tokens of q, k and v for all tokens of a share of the heads, and the output
// back; the backward exchanges the output's gradient first, then those of q, k and v.
void AddHeadExchange(const RankShape& rank, AttentionPass pass, SegmentList& list) {
  const bool backward = pass == AttentionPass::kBackward;
  const ExchangeNames names = ExchangeNamesOf(pass);
  const auto exchange = [&](const char* name, std::int64_t width) {
    list.Collective(name, {CollectiveKind::kAllToAll, kCp,
                           base::Bytes(rank.tokens * width * rank.element_bytes)});
  };
  exchange(names.before, backward ? rank.query : rank.qkv());
  std::vector<Kernel> kernels;
  for (const Spans& spans : CutIntoSpans(rank)) {
    Attention core = Core(rank, spans, backward);
    core.query_len = spans.length;
    core.kv_len = spans.length;
    core.heads = CeilDivide(core.heads, rank.cp);
    core.kv_heads = CeilDivide(core.kv_heads, rank.cp);
    kernels.emplace_back(core);
  }
  list.Compute(names.attention, std::move(kernels));
  exchange(names.behind, backward ? rank.qkv() : rank.query);
}

struct GatherNames {
  const char* gather;
  const char* copy;
  const char* core;
};

GatherNames GatherNamesOf(AttentionPass pass) {
  switch (pass) {
    case AttentionPass::kForward:
      return {"attention gather", "attention gather copy", "attention"};
    case AttentionPass::kRecompute:
      return {"attention gather recompute", "attention gather copy recompute",
              "attention recompute"};
    case AttentionPass::kBackward:
      break;
  }
  return {"attention gather backward", "attention gather copy backward", "attention backward"};
}

// The rank's queries against all keys. Of a causal mask the rank's two chunks of the zigzag see the
// whole span once together: query_len × span / 2 in all.
Kernel GatheredCore(const RankShape& rank, const Spans& spans, bool backward) {
  Attention attention = Core(rank, spans, backward);
  attention.kv_len = attention.causal ? CeilDivide(spans.length, 2) : spans.length;
  attention.causal = false;
  return attention;
}

// K and V of the group are gathered and laid out in the order of tokens (the backward gathers them
// again); their gradients are summed and scattered. Nothing runs beside that.
void AddGathered(const RankShape& rank, AttentionPass pass, SegmentList& list) {
  const bool backward = pass == AttentionPass::kBackward;
  const GatherNames names = GatherNamesOf(pass);
  const std::int64_t elements = 2 * rank.tokens * rank.cp * rank.kv;
  InnerCollective whole{CollectiveKind::kAllGather, kCp,
                        base::Bytes(elements * rank.element_bytes)};
  list.Collective(names.gather, whole);
  list.Compute(names.copy, {Moves(MemoryClass::kElementwise, rank.Widen(4 * elements), 2)});
  std::vector<Kernel> kernels;
  for (const Spans& spans : CutIntoSpans(rank)) {
    kernels.push_back(GatheredCore(rank, spans, backward));
  }
  list.Compute(names.core, std::move(kernels));
  if (!backward) return;
  whole.kind = CollectiveKind::kReduceScatter;
  list.Collective("attention gradient scatter", whole);
}

}  // namespace

void AddAttention(const RankShape& rank, AttentionPass pass, SegmentList& list) {
  if (rank.cp > 1) {
    switch (rank.settings->context_parallel) {
      case ContextParallel::kRing:
        AddRing(rank, pass, list);
        return;
      case ContextParallel::kAllToAll:
        AddHeadExchange(rank, pass, list);
        return;
      case ContextParallel::kAllGather:
        AddGathered(rank, pass, list);
        return;
    }
  }
  const bool backward = pass == AttentionPass::kBackward;
  std::vector<Kernel> kernels;
  for (const Spans& spans : CutIntoSpans(rank)) kernels.emplace_back(Core(rank, spans, backward));
  const char* name = pass == AttentionPass::kForward     ? "attention"
                     : pass == AttentionPass::kRecompute ? "attention recompute"
                                                         : "attention backward";
  list.Compute(name, std::move(kernels));
}

double AttentionModelFlops(const RankShape& rank) {
  double pairs = 0.0;  // query-key pairs of the whole cp group
  for (const Spans& spans : CutIntoSpans(rank)) {
    const auto length = static_cast<double>(spans.length);
    pairs += static_cast<double>(spans.count) * length * length;
  }
  const Transformer& t = *rank.transformer;
  const double width = static_cast<double>(t.num_heads * t.head_dim) / rank.tp;
  return 4.0 * pairs * width * (rank.decoder ? 0.5 : 1.0) / rank.cp;
}

}  // namespace isthmus::plan::internal
