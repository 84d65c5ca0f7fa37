#include "plan/model/flops.h"

#include "base/check.h"
#include "plan/model/layers.h"

namespace isthmus::plan {
namespace {

bool is_decoder(const ModuleTokens& what) { return what.module->kind == ModuleKind::kDecoder; }

// The whole module as one block on one rank: DescribeWork's own count.
base::Flops CausalFlops(const ModuleTokens& what) {
  BlockShape shape;
  shape.module = what.module;
  shape.block.num_layers = what.module->transformer.num_layers;
  shape.block.stem = true;
  shape.block.projector = what.projector_in > 0;
  shape.block.head = is_decoder(what) && what.head;
  shape.tokens = what.tokens;
  shape.span = what.span;
  shape.projector_in = what.projector_in;
  shape.projector_out = what.projector_out;
  if (what.projector_tokens > 0) shape.projector_tokens = what.projector_tokens;
  shape.needs_input_gradient = what.needs_input_gradient;
  shape.needs_weight_gradient = what.needs_weight_gradient;
  return DescribeWork(shape, Action::kForward).model_flops +
         DescribeWork(shape, Action::kBackward).model_flops;
}

base::Flops FullAttentionFlops(const ModuleTokens& what) {
  const Transformer& t = what.module->transformer;
  const std::int64_t span = what.span > 0 ? what.span : what.tokens;
  const double per_layer = 2.0 * static_cast<double>(LayerMatrixParameters(t)) +
                           4.0 * static_cast<double>(span * t.num_heads * t.head_dim);
  double forward = t.num_layers * per_layer;
  if (is_decoder(what) && what.head) {
    forward += 2.0 * static_cast<double>(t.hidden * t.vocab_size);
  }
  return base::Flops(3.0 * forward * static_cast<double>(what.tokens));
}

// The harness counts layers with their norms and one vocabulary table.
base::Flops ParameterFlops(const ModuleTokens& what) {
  const Transformer& t = what.module->transformer;
  const std::int64_t parameters = t.num_layers * LayerParameters(t) + t.hidden * t.vocab_size;
  return base::Flops(6.0 * static_cast<double>(parameters) * static_cast<double>(what.tokens));
}

}  // namespace

const char* ToText(FlopConvention convention) {
  switch (convention) {
    case FlopConvention::kCausal:
      return "causal";
    case FlopConvention::kFullAttention:
      return "full_attention";
    case FlopConvention::kParameters:
      return "parameters";
  }
  ISTHMUS_CHECK(false, "no such FLOP convention: {}", static_cast<int>(convention));
}

base::Flops ModuleFlops(FlopConvention convention, const ModuleTokens& what) {
  ISTHMUS_CHECK(what.module != nullptr && what.tokens >= 0);
  switch (convention) {
    case FlopConvention::kCausal:
      return CausalFlops(what);
    case FlopConvention::kFullAttention:
      return FullAttentionFlops(what);
    case FlopConvention::kParameters:
      break;
  }
  return ParameterFlops(what);
}

base::Flops StepFlops(FlopConvention convention, std::span<const ModuleTokens> modules) {
  base::Flops total{0.0};
  for (const ModuleTokens& what : modules) total += ModuleFlops(convention, what);
  return total;
}

}  // namespace isthmus::plan
