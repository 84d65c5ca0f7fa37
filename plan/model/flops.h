#pragma once

#include <cstdint>
#include <span>

#include "base/units.h"
#include "plan/model/module.h"

/// Model FLOP of a step under the conventions that published TFLOPS figures use. Recomputation
/// never counts. docs/models/flops.md tells how to recognise each.
namespace isthmus::plan {

enum class FlopConvention : std::uint8_t {
  /// This project's: what the model needs. Matrices 2·P·tokens, causal attention half of s²,
  /// forward
  /// once, backward once for the inputs and once for the weights that are trained. Vocabulary
  /// unpadded. The sum of Work::model_flops over ranks and microbatches.
  kCausal,
  /// `uniform_tflops_noncausal` of the training runs: 3 × forward with the full s² attention.
  kFullAttention,
  /// 6·P·tokens, P with one vocabulary table; no attention term. The multimodal paper's harness.
  kParameters,
};
/// "causal", "full_attention", "parameters": for reports, which must name the convention.
const char* ToText(FlopConvention convention);

/// What one module works on in a step, all data-parallel copies together.
struct ModuleTokens {
  const Module* module = nullptr;
  std::int64_t tokens = 0;
  std::int64_t span = 0;  // tokens that attend to each other; a rest is one shorter span
  bool head = true;       // decoders: LM head and loss
  // Which gradients are needed, of inputs of the layers and of their weights (kCausal only).
  bool needs_input_gradient = true;
  bool needs_weight_gradient = true;
  std::int64_t projector_in = 0;  // widths of a projector that runs with the module; 0 without
  std::int64_t projector_out = 0;
  std::int64_t projector_tokens = 0;  // 0: `tokens`
};

/// Of one module. Needs tokens ≥ 0 and a module.
base::Flops ModuleFlops(FlopConvention convention, const ModuleTokens& what);
/// Sum over the modules of a step.
base::Flops StepFlops(FlopConvention convention, std::span<const ModuleTokens> modules);

}  // namespace isthmus::plan
