#include "plan/model/memory_rules.h"

namespace isthmus::plan {
namespace {

// In the MLP dY, its gathered copy, the gradient of FC1's output and the residual's; in the
// attention dY, its gathered copy, the gradients of q, k and v twice (attention's and rotary's).
constexpr BackwardTensors kMegatronMlp{.sharded = 2, .gathered = 1, .fc1 = 1};
constexpr BackwardTensors kMegatronAttention{.sharded = 1, .gathered = 1, .qkv = 2};

}  // namespace

constinit const MemoryRules kTransformerEngineRules{.saved = &kTransformerEngine,
                                                    .saved_fp8 = &kTransformerEngineFp8,
                                                    .mlp = kMegatronMlp,
                                                    .attention = kMegatronAttention,
                                                    .keeps_placeholder_gradients = true,
                                                    .keeps_head_placeholder = true};

constinit const MemoryRules kEarlyTransformerEngineRules{.saved = &kTransformerEngine,
                                                         .saved_fp8 = &kTransformerEngineFp8,
                                                         .mlp = kMegatronMlp,
                                                         .attention = kMegatronAttention};

constinit const MemoryRules kMegatron2022Rules{
    .saved = &kMegatron2022, .mlp = kMegatronMlp, .attention = kMegatronAttention};

// dY sharded, and gathered (or the gradient of the layer's input), and the gradient of FC1's
// output.
constinit const MemoryRules kNanotronRules{.saved = &kNanotron,
                                           .mlp = {.sharded = 1, .whole = 1, .fc1 = 1},
                                           .keeps_gathered_norm_outputs = true,
                                           .computes_head_gradient_beside_loss = false,
                                           .vocabulary_multiple = 1};

// dY and the residual's gradient; gradients of gate, up and SiLU.
constinit const MemoryRules kEagerLlamaRules{
    .saved = &kEagerLlama, .mlp = {.sharded = 2, .fc1 = 1, .ffn = 1}, .vocabulary_multiple = 1};

constinit const MemoryRules kEagerLlamaFusedNormRules{.saved = &kEagerLlamaFusedNorm,
                                                      .mlp = {.sharded = 2, .fc1 = 1, .ffn = 1},
                                                      .vocabulary_multiple = 1};

}  // namespace isthmus::plan
