#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/layout/layout.h"
#include "plan/model/framework.h"
#include "plan/model/kernel.h"
#include "plan/model/run_settings.h"

/// Modules of the graph: what they are (dimensions) and how they are run (settings).
namespace isthmus::plan {

enum class ModuleKind : std::uint8_t { kVit, kAudio, kDecoder };

/// Dimensions of a stack of transformer layers.
///
/// Parameters of a layer: h·q + 2·h·k + q·h + (G+1)·h·f plus norms, with q = heads·head_dim,
/// k = kv_heads·head_dim, G = 2 for a gated MLP and 1 for a plain one. Norms: a gated MLP comes
/// with RMSNorm (2·h a layer), a plain one with LayerNorm (4·h: scale and shift). Biases of linear
/// layers are left out (below 0.01 %).
struct Transformer {
  int num_layers = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn_hidden = 0;
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;
  bool gated_mlp = false;
  bool rotary = false;
  std::int64_t vocab_size = 0;  // 0 for encoders
  bool tied_embeddings = false;
  /// Learned positions, one vector each; 0 without. Encoders without rotary have at least
  /// span_tokens.
  std::int64_t max_positions = 0;
  double hidden_dropout = 0.0;
  bool qk_norm = false;  // RMSNorm over the heads of q and k; its scales, 2·head_dim, left out
};

/// Maps encoder width to LLM width; an MLP of `num_layers` linear layers.
struct Projector {
  enum class Place : std::uint8_t { kWithEncoder, kWithLlm };
  int num_layers = 1;
  std::int64_t hidden = 0;  // inner width of a two-layer projector
  Place place = Place::kWithEncoder;
  bool frozen = false;
};

/// How one module is run. Each field decides whole tables of published results; none is implied.
struct ModuleSettings {
  /// Never null. What the other fields are by default is DefaultSettings()' business.
  const FrameworkRelease* framework = &DefaultFramework();
  bool frozen = false;
  BackwardMode backward = BackwardMode::kReal;
  bool sequence_parallel = true;
  TpOverlap tp_overlap = TpOverlap::kUserBuffers;
  Recompute recompute = Recompute::kNone;
  int recompute_layers = 0;  // kFull: layers per stage that are recomputed, 0 = all
  DType precision = DType::kBf16;
  Fp8Scaling fp8_scaling = Fp8Scaling::kTensor;
  /// fp8: weights are kept, and gathered over data parallel copies, in fp8 alone; else in 16 bit
  /// with fp8 copies beside.
  bool fp8_primary_weights = false;
  DType gradient_dtype = DType::kFp32;  // main gradients
  AttentionKernel attention = AttentionKernel::kCudnn;
  LossKernel loss = LossKernel::kFused;
  ContextParallel context_parallel = ContextParallel::kRing;
  HostIssue host_issue = HostIssue::kEager;
  CpAttention cp_attention = CpAttention::kFixedLength;
  int optimizer_instances = 1;
  bool offload_parameters =
      false;  // colocated encoders: parameters on the host during the LLM phase
};

/// Settings of a release when a scenario says no more than its name.
ModuleSettings DefaultSettings(const FrameworkRelease& framework);

/// The type of activations and boundary tensors: 16 bit in fp8 runs too.
DType ActivationType(const ModuleSettings& settings);
/// The type in which weights are kept and gathered: fp8 only with fp8_primary_weights.
DType ParameterType(const ModuleSettings& settings);

/// One module of the graph with its own layout.
struct Module {
  std::string name;
  ModuleKind kind = ModuleKind::kDecoder;
  Transformer transformer;
  std::optional<Projector> projector;  // encoders only
  ModuleSettings settings;
  /// Absent: *homogeneous*, on the ranks of the LLM's first stage with its TP, CP and DP.
  std::optional<Layout> layout;

  // Encoders: tokens of one sample (where samples differ, of the one that has most) inside the
  // encoder and after pixel-shuffle at the LLM, and how many tokens attend to each other (one
  // image, one clip). Decoder: of a packed document, 0: all.
  std::int64_t tokens_per_sample = 0;
  std::int64_t llm_tokens_per_sample = 0;
  std::int64_t span_tokens = 0;
  /// Encoders: how many spans of span_tokens each sample of a step has, by its place in the global
  /// batch, the same in every step; 0 for text-only samples. Empty: all samples are alike.
  std::vector<std::int32_t> spans_of_sample;

  /// Input width of patches (channels · patch²) or audio features; 0 leaves the stem out.
  std::int64_t input_width = 0;
};

/// Parameters of one layer's weight matrices: h·q + 2·h·k + q·h + (G+1)·h·f.
std::int64_t LayerMatrixParameters(const Transformer& t);
/// The same plus the two norms.
std::int64_t LayerParameters(const Transformer& t);
/// Parameters of one norm: h or 2·h.
std::int64_t NormParameters(const Transformer& t);
/// Linear layers from encoder_hidden to llm_hidden, inner width `hidden` (llm_hidden when 0).
std::int64_t ProjectorParameters(const Projector& p, std::int64_t encoder_hidden,
                                 std::int64_t llm_hidden);
/// The whole stack on no particular rank: layers, learned positions, token embedding, final norm
/// and head (no head of its own when tied); embeddings, final norm and head only with a vocabulary.
std::int64_t TotalParameters(const Transformer& t);

}  // namespace isthmus::plan
