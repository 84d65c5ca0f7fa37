#include "plan/model/saved_tensors.h"

#include <array>

namespace isthmus::plan {
namespace {

using enum SavedWidth;
using enum SavedSplit;
using enum SavedWhen;

// Rows that tables share. Attention statistics are fp32, the softmax matrix 16 bit.
constexpr SavedTensor kNorm1Input{"norm 1 input",    2,       kHidden,
                                  kSequenceParallel, kAlways, SavedBy::kResidual};
constexpr SavedTensor kNorm1Output{"norm 1 output", 2, kHidden, kSequenceParallel, kWeightGradient,
                                   SavedBy::kNorm};
constexpr SavedTensor kNorm2Input{"norm 2 input",    2,       kHidden,
                                  kSequenceParallel, kAlways, SavedBy::kResidual};
constexpr SavedTensor kNorm2Output{"norm 2 output", 2, kHidden, kSequenceParallel, kWeightGradient,
                                   SavedBy::kNorm};
constexpr SavedTensor kNormStatistics{"norm statistics", 16,   kOne, kSequenceParallel, kAlways,
                                      SavedBy::kNorm,    false};
constexpr SavedTensor kQkvTensor{"q, k, v",       2,       kQkv,
                                 kTensorParallel, kAlways, SavedBy::kProjections};
constexpr SavedTensor kAttentionOutput{"attention output", 2,       kQuery,
                                       kTensorParallel,    kAlways, SavedBy::kProjections};
constexpr SavedTensor kBeforeExchange{"attention output before the exchange of heads",
                                      2,
                                      kQuery,
                                      kTensorParallel,
                                      kHeadExchange,
                                      SavedBy::kProjections};
constexpr SavedTensor kLogSumExp{"attention log-sum-exp", 4,    kHeads, kTensorParallel, kFlash,
                                 SavedBy::kAttentionCore, false};
constexpr SavedTensor kSoftmax{"softmax",       2,        kHeadsTimesSpan,
                               kTensorParallel, kUnfused, SavedBy::kAttentionCore};
constexpr SavedTensor kSoftmaxDropout{
    "softmax dropout output and mask", 3,    kHeadsTimesSpan, kTensorParallel, kUnfusedDropout,
    SavedBy::kAttentionCore,           false};
constexpr SavedTensor kFc1Output{"fc1 output", 2, kFc1, kTensorParallel, kAlways, SavedBy::kMlp};
constexpr SavedTensor kActivationOutput{
    "activation output", 2, kFfn, kTensorParallel, kWeightGradient, SavedBy::kMlp};
constexpr SavedTensor kDropoutMasks{
    "dropout masks", 2, kHidden, kSequenceParallel, kHiddenDropout, SavedBy::kResidual, false};

constexpr std::array kTransformerEngineRows{
    kNorm1Input, kNorm1Output,      kQkvTensor,      kAttentionOutput, kBeforeExchange,
    kLogSumExp,  kSoftmax,          kSoftmaxDropout, kNorm2Input,      kNorm2Output,
    kFc1Output,  kActivationOutput, kDropoutMasks,   kNormStatistics};

constexpr std::array kFp8Rows{kNorm1Input,
                              SavedTensor{"norm 1 output, fp8", 1, kHidden, kSequenceParallel,
                                          kWeightGradient, SavedBy::kNorm, false},
                              kQkvTensor,
                              kAttentionOutput,
                              SavedTensor{"attention output, fp8", 1, kQuery, kTensorParallel,
                                          kWeightGradient, SavedBy::kProjections, false},
                              kBeforeExchange,
                              kLogSumExp,
                              kSoftmax,
                              kSoftmaxDropout,
                              kNorm2Input,
                              SavedTensor{"norm 2 output, fp8", 1, kHidden, kSequenceParallel,
                                          kWeightGradient, SavedBy::kNorm, false},
                              kFc1Output,
                              SavedTensor{"activation output, fp8", 1, kFfn, kTensorParallel,
                                          kWeightGradient, SavedBy::kMlp, false},
                              kDropoutMasks,
                              kNormStatistics};

constexpr std::array kMegatron2022Rows{
    kNorm1Input,       kNorm1Output,    kQkvTensor,     kAttentionOutput, kLogSumExp,
    kSoftmax,          kSoftmaxDropout, kNorm2Input,    kNorm2Output,     kFc1Output,
    kActivationOutput, kDropoutMasks,   kNormStatistics};

constexpr std::array kNanotronRows{
    kNorm1Input,
    SavedTensor{"norm 1 output, gathered", 2, kHidden, kWhole, kWeightGradient, SavedBy::kNorm},
    SavedTensor{"packed q, k, v, pinned by q", 2, kQkv, kTensorParallel, kAlways,
                SavedBy::kProjections},
    SavedTensor{"copy of k, v", 2, kKeyValue, kTensorParallel, kAlways, SavedBy::kProjections},
    kAttentionOutput,
    SavedTensor{"attention output, sequence first", 2, kQuery, kTensorParallel, kSeveralSamples,
                SavedBy::kProjections},
    kLogSumExp,
    kNorm2Input,
    SavedTensor{"norm 2 output, gathered", 2, kHidden, kWhole, kWeightGradient, SavedBy::kNorm},
    kFc1Output,
    SavedTensor{"SiLU output", 2, kFfn, kTensorParallel, kAlways, SavedBy::kMlp},
    kActivationOutput};

// Gate and up are FC1's output; the SiLU's output is kept for the product.
constexpr SavedTensor kSiluOutput{"SiLU output", 2, kFfn, kTensorParallel, kAlways, SavedBy::kMlp};
constexpr SavedTensor kEagerNorms{"fp32 copies and 16-bit normalised form of both norms",
                                  20,
                                  kHidden,
                                  kSequenceParallel,
                                  kAlways,
                                  SavedBy::kNorm,
                                  false};

constexpr std::array kEagerFusedNormRows{
    kNorm1Input, kNorm1Output, kQkvTensor, kAttentionOutput, kLogSumExp,       kSoftmax,
    kNorm2Input, kNorm2Output, kFc1Output, kSiluOutput,      kActivationOutput};
constexpr std::array kEagerRows{kNorm1Input,      kNorm1Output, kEagerNorms, kQkvTensor,
                                kAttentionOutput, kLogSumExp,   kSoftmax,    kNorm2Input,
                                kNorm2Output,     kFc1Output,   kSiluOutput, kActivationOutput};

}  // namespace

const SavedTensorTable kTransformerEngine{"megatron-te bf16", kTransformerEngineRows};
const SavedTensorTable kTransformerEngineFp8{"megatron-te fp8", kFp8Rows};
const SavedTensorTable kMegatron2022{"megatron-lm 2022", kMegatron2022Rows};
const SavedTensorTable kNanotron{"nanotron", kNanotronRows};
const SavedTensorTable kEagerLlama{"eager llama", kEagerRows};
const SavedTensorTable kEagerLlamaFusedNorm{"eager llama, fused norms", kEagerFusedNormRows};

}  // namespace isthmus::plan
