#include <fmt/format.h>

#include "scenarios/internal/fields.h"

namespace isthmus::scenarios::internal {
namespace {

using enum Presence;
using plan::AttentionKernel;
using plan::AxisOrder;
using plan::BackwardMode;
using plan::DType;
using plan::ModuleKind;
using plan::Projector;
using plan::Recompute;
using plan::TpOverlap;

void DimensionFields(Archive& archive, ModelSpec& model) {
  archive.Value("num_layers", Integer(model.num_layers, kLayers), kRequired, "transformer layers");
  archive.Value("hidden", Integer(model.hidden, kWidth), kRequired, "width of a token");
  archive.Value("ffn_hidden", Integer(model.ffn_hidden, kWidth), kRequired,
                "inner width of the MLP; of a gated MLP, of each of its two halves");
  archive.Value("num_heads", Integer(model.num_heads, kWidth), kRequired, "query heads");
  archive.Value("num_kv_heads", Integer(model.num_kv_heads, kWidth), kOptional,
                "key and value heads (grouped-query attention); absent: num_heads");
  archive.Value("head_dim", Integer(model.head_dim, kWidth), kOptional,
                "width of a head; absent: hidden / num_heads");
  archive.Value("gated_mlp", BoolScalar(model.gated_mlp), kOptional,
                "MLP with a gate (SwiGLU) instead of a plain one (GELU)");
  archive.Value("rotary", BoolScalar(model.rotary), kOptional, "rotary position embedding");
  archive.Value("qk_norm", BoolScalar(model.qk_norm), kOptional,
                "norm over each head of q and k before attention (Qwen3)");
  archive.Value("hidden_dropout", Real(model.hidden_dropout, 0.0, 0.99), kOptional,
                "probability; above 0 the masks of dropout are saved");
}

}  // namespace

void Fields(Archive& archive, ModelSpec& model) {
  archive.Value("name", TextScalar(model.name), kOptional, "name in reports");
  archive.Value("source", TextScalar(model.source), kOptional,
                "where the dimensions come from; of an assumption, its reason");
  archive.Value("mark",
                OneOf(model.mark, {Means("published", ModelMark::kPublished),
                                   Means("assumed", ModelMark::kAssumed)}),
                kOptional, "how the dimensions are known; assumed ones are listed in every report");
  archive.Value(
      "kind",
      OneOf(model.kind, {Means("vit", ModuleKind::kVit), Means("audio", ModuleKind::kAudio),
                         Means("decoder", ModuleKind::kDecoder),
                         Later("moe_decoder", "experts come with their own layouts"),
                         Later("generator", "modules behind the LLM")}),
      kRequired, "what the module is");
  DimensionFields(archive, model);
  archive.Value("vocab_size", Integer(model.vocab_size, {0, 16'777'216}), kOptional,
                "decoders: entries of the vocabulary");
  archive.Value("tied_embeddings", BoolScalar(model.tied_embeddings), kOptional,
                "decoders: the head is the embedding's matrix");
  archive.Value("tokens_per_image", Integer(model.tokens_per_image, kTokens), kOptional,
                "vit: tokens of one image inside the encoder");
  archive.Value("tokens_per_clip", Integer(model.tokens_per_clip, kTokens), kOptional,
                "audio: tokens of one clip inside the encoder");
  archive.Value("pixel_shuffle", Integer(model.pixel_shuffle, {1, 16}), kOptional,
                "vit: side of the squares of tokens that become one token for the LLM");
  archive.Value("input_width", Integer(model.input_width, {0, 1'048'576}), kOptional,
                "encoders: width of a patch (channels times its pixels) or of an audio frame; 0 "
                "leaves the first projection out");
  archive.NotBuilt("num_experts", "mixture-of-experts layers");
  archive.NotBuilt("window", "sliding-window attention");
}

void Fields(Archive& archive, LayoutSpec& layout) {
  archive.Value("tp", Integer(layout.tp, kDegree), kOptional, "tensor parallel degree");
  archive.Value("cp", Integer(layout.cp, kDegree), kOptional, "context parallel degree");
  archive.Value("pp", Integer(layout.pp, kDegree), kOptional, "pipeline parallel degree");
  archive.Value("dp", Integer(layout.dp, kRankCount), kOptional,
                "data parallel degree; absent: as many as the module's ranks allow");
  archive.Value("num_ranks", Integer(layout.num_ranks, kRankCount), kOptional,
                "ranks of the module; absent: up to the next module's first rank, or the last one");
  archive.Value("first_rank", Integer(layout.first_rank, {0, kRankCount.max - 1}), kOptional,
                "where the module's ranks start");
  archive.Value("order",
                OneOf(layout.order, {Means("tp-cp-dp-pp", AxisOrder::kTpCpDpPp),
                                     Means("tp-cp-pp-dp", AxisOrder::kTpCpPpDp),
                                     Means("tp-cp-ep-dp-pp", AxisOrder::kTpCpDpPp)}),
                kOptional, "axes of the grid, fastest first");
  archive.Value(
      "split",
      OneOf(layout.split, {Means("even", LayerSplit::kEven), Means("search", LayerSplit::kSearch)}),
      kOptional,
      "layers per stage where stage_layers is absent: as even as can be, or so that the slowest "
      "stage takes least when only the first and the last may differ, encoders on the first and "
      "the head counted");
  archive.Values(
      "stage_layers", layout.stage_layers.size(),
      [&layout](std::size_t size) { layout.stage_layers.resize(size); },
      [&layout](std::size_t index) {
        return Integer(layout.stage_layers[index], {0, kLayers.max});
      },
      "layers of each (virtual) stage, first to last; absent: by `split`; even means that the "
      "first "
      "stages take the rest, or that the ends have one less where two layers more would divide");
  archive.Value(
      "vpp", Integer(layout.vpp, kDegree), kOptional,
      "model chunks (virtual stages) per rank; more than 1: interleaved 1F1B, for the LLM");
  archive.Value("ep", Integer(layout.ep, kDegree), kOptional,
                "expert parallel degree; only 1 is built today");
  archive.Value("etp", Integer(layout.etp, kDegree), kOptional,
                "tensor parallel degree of experts; only 1 is built today");
}

void Fields(Archive& archive, Projector& projector) {
  archive.Value("num_layers", Integer(projector.num_layers, {1, 2}), kOptional,
                "1: a linear map; 2: an MLP");
  archive.Value("hidden", Integer(projector.hidden, {0, kWidth.max}), kOptional,
                "inner width of two layers; 0: the LLM's width");
  archive.Value("with",
                OneOf(projector.place, {Means("encoder", Projector::Place::kWithEncoder),
                                        Means("llm", Projector::Place::kWithLlm)}),
                kOptional,
                "whose ranks run it; the boundary tensor has LLM width with `encoder`, encoder "
                "width with `llm`");
  archive.Value("frozen", BoolScalar(projector.frozen), kOptional, "not trained");
}

void Fields(Archive& archive, plan::ModuleSettings& settings) {
  archive.Value("frozen", BoolScalar(settings.frozen), kOptional, "not trained");
  archive.Value("backward",
                OneOf(settings.backward,
                      {Means("real", BackwardMode::kReal), Means("absent", BackwardMode::kAbsent)}),
                kOptional,
                "absent: an encoder's backward does not run (simulation only, for published runs "
                "that behave so)");
  archive.Value("sequence_parallel", BoolScalar(settings.sequence_parallel), kOptional,
                "norms and dropout split over tp, all-gather and reduce-scatter for all-reduce");
  archive.Value(
      "tp_overlap",
      OneOf(settings.tp_overlap, {Means("none", TpOverlap::kNone), Means("bulk", TpOverlap::kBulk),
                                  Means("user_buffers", TpOverlap::kUserBuffers)}),
      kOptional, "how tensor parallel communication hides behind matrix products");
  archive.Value("recompute",
                OneOf(settings.recompute,
                      {Means("none", Recompute::kNone), Means("selective", Recompute::kSelective),
                       Means("full", Recompute::kFull)}),
                kOptional, "what the backward computes again instead of keeping it");
  archive.Value("recompute_layers", Integer(settings.recompute_layers, {0, kLayers.max}), kOptional,
                "with recompute full: layers per stage; 0: all");
  archive.Value("precision",
                OneOf(settings.precision, {Means("bf16", DType::kBf16), Means("fp16", DType::kFp16),
                                           Means("fp32", DType::kFp32), Means("fp64", DType::kFp64),
                                           Means("fp8", DType::kFp8)}),
                kOptional,
                "type of weights and activations; fp8: matrix products of the layers in fp8, "
                "everything else in 16 bit; fp64: for runs on real ranks only");
  archive.Value("fp8_scaling",
                OneOf(settings.fp8_scaling, {Means("tensor", plan::Fp8Scaling::kTensor),
                                             Means("block", plan::Fp8Scaling::kBlock)}),
                kOptional, "with precision fp8: one scale per tensor, or per block of elements");
  archive.Value("fp8_primary_weights", BoolScalar(settings.fp8_primary_weights), kOptional,
                "with precision fp8: weights are kept and gathered in fp8 alone");
  archive.Value(
      "gradient_dtype",
      OneOf(settings.gradient_dtype, {Means("fp32", DType::kFp32), Means("fp64", DType::kFp64),
                                      Means("bf16", DType::kBf16)}),
      kOptional, "type of the main gradients, which are accumulated and reduced");
  archive.Value(
      "attention",
      OneOf(settings.attention,
            {Means("cudnn", AttentionKernel::kCudnn), Means("flash3", AttentionKernel::kFlash3),
             Means("flash2", AttentionKernel::kFlash2), Means("flash1", AttentionKernel::kFlash1),
             Means("unfused", AttentionKernel::kUnfused)}),
      kOptional, "which code runs the attention core");
  archive.Value("loss",
                OneOf(settings.loss, {Means("fused", plan::LossKernel::kFused),
                                      Means("unfused", plan::LossKernel::kUnfused),
                                      Means("in_place", plan::LossKernel::kInPlace),
                                      Means("shifted_copy", plan::LossKernel::kShiftedCopy),
                                      Means("eager", plan::LossKernel::kEager),
                                      Means("gathered_eager", plan::LossKernel::kGatheredEager),
                                      Means("held_outputs", plan::LossKernel::kHeldOutputs)}),
                kOptional,
                "decoders: which code runs the cross-entropy; bytes a logit: in_place 2, fused 6, "
                "shifted_copy 8, unfused 10, eager 14, gathered_eager 16 of the whole vocabulary, "
                "held_outputs 20");
  archive.Value(
      "context_parallel",
      OneOf(settings.context_parallel, {Means("ring", plan::ContextParallel::kRing),
                                        Means("all_gather", plan::ContextParallel::kAllGather),
                                        Means("all_to_all", plan::ContextParallel::kAllToAll)}),
      kOptional,
      "with cp > 1: keys and values go round a ring, all are gathered before attention, or "
      "sequences "
      "are exchanged for heads");
  archive.Value("host_issue",
                OneOf(settings.host_issue, {Means("eager", plan::HostIssue::kEager),
                                            Means("graph", plan::HostIssue::kGraph)}),
                kOptional,
                "eager: the host issues the kernels layer by layer, and a device without queued "
                "work waits for it; graph: all at once");
  archive.Value(
      "cp_attention",
      OneOf(settings.cp_attention, {Means("fixed_length", plan::CpAttention::kFixedLength),
                                    Means("variable_length", plan::CpAttention::kVariableLength)}),
      kOptional,
      "with cp > 1: how the ring's attention is called; packed samples need "
      "variable_length, whose steps are slower");
  archive.Value("optimizer_instances", Integer(settings.optimizer_instances, kDegree), kOptional,
                "copies of the sharded optimizer state; dp is split into as many groups");
  archive.Value("offload_parameters", BoolScalar(settings.offload_parameters), kOptional,
                "colocated encoders: parameters lie on the host during the LLM's phase");
}

namespace {

void SpanCountsField(Archive& archive, std::string_view key, SpanCounts& counts,
                     std::string_view doc) {
  Scalar fixed = Integer(counts.fixed, kSamples);
  fixed.list_key = "each";
  archive.StructOr(
      key, fixed, counts.varies(), [&counts](Archive& inner) { Fields(inner, counts); }, doc);
}

}  // namespace

void Fields(Archive& archive, SpanCounts& counts) {
  constexpr IntegerRange kSpans = {0, kSamples.max};
  const auto list = [&](std::string_view key, std::vector<std::int64_t>& values,
                        std::string_view doc) {
    archive.Values(
        key, values.size(), [&values](std::size_t size) { values.resize(size); },
        [&values, kSpans](std::size_t index) { return Integer(values[index], kSpans); }, doc);
  };
  list("each", counts.each,
       "by place in the global batch (data parallel copy of the LLM, microbatch, sample), repeated "
       "over it: [1, 0, 2], which may stand for the map; 0: text alone");
  list("uniform", counts.uniform,
       "instead of each: [least, most], drawn for each place, the same in every step");
  archive.Value("text_only_fraction", Real(counts.text_only_fraction, 0.0, 1.0), kOptional,
                "with uniform: share of the samples that are text alone, the same ones in all "
                "modules that say so");
  archive.Value("seed", Integer(counts.seed, {0, 1'000'000'000'000}), kOptional,
                "of what is drawn here; absent: the scenario's");
}

void Fields(Archive& archive, ModuleSpec& module) {
  Scalar preset = TextScalar(module.model_preset);
  preset.type = "name of a file in scenarios/models/";
  archive.StructOr(
      "model", preset, module.model_preset.empty(),
      [&module](Archive& inner) { Fields(inner, module.model); },
      "the model: a name, its keys in place, or `extends: name` and changed keys");
  Scalar inherit = OneOf(module.inherits_layout, {Means("inherit", true)});
  archive.StructOr(
      "layout", inherit, !module.inherits_layout,
      [&module](Archive& inner) { Fields(inner, module.layout); },
      "degrees and ranks; `inherit`: the encoder runs on the LLM's first stage with "
      "the LLM's tp, cp and dp (homogeneous)");
  Scalar none = OneOf(module.has_projector, {Means("none", false)});
  archive.StructOr(
      "projector", none, module.has_projector,
      [&module](Archive& inner) { Fields(inner, module.projector); },
      "encoders: the map to the LLM's width; `none` if the widths are equal");
  archive.Value("tokens_per_image", Integer(module.tokens_per_image, kTokens), kOptional,
                "vit: replaces the model's");
  SpanCountsField(archive, "images_per_sample", module.images_per_sample,
                  "vit: images in each sample; a list or map where samples differ");
  archive.Value("vision_fraction", Real(module.vision_fraction, 0.0, 1.0), kOptional,
                "vit, instead of images_per_sample: share of the sequence that images fill");
  archive.Value("tokens_per_clip", Integer(module.tokens_per_clip, kTokens), kOptional,
                "audio: replaces the model's");
  SpanCountsField(archive, "clips_per_sample", module.clips_per_sample,
                  "audio: clips in each sample; a list or map where samples differ");
  archive.Value("audio_fraction", Real(module.audio_fraction, 0.0, 1.0), kOptional,
                "audio, instead of clips_per_sample: share of the sequence that clips fill");
  Fields(archive, module.settings);
  archive.NotBuilt("tokens_per_sample", "sizes drawn from a distribution");
  archive.NotBuilt("offload_optimizer", "only parameters can be offloaded");
}

}  // namespace isthmus::scenarios::internal
