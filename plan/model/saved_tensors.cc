#include "plan/model/saved_tensors.h"

#include <array>

namespace isthmus::plan {
namespace {

using enum SavedWidth;
using enum SavedSplit;
using enum SavedWhen;

// The rows both precisions share. Attention statistics are fp32, the softmax matrix 16 bit.
constexpr SavedTensor kNorm1Input{"norm 1 input",    2,       kHidden,
                                  kSequenceParallel, kAlways, SavedBy::kResidual};
constexpr SavedTensor kNorm2Input{"norm 2 input",    2,       kHidden,
                                  kSequenceParallel, kAlways, SavedBy::kResidual};
constexpr SavedTensor kNormStatistics{"norm statistics", 16,   kOne, kSequenceParallel, kAlways,
                                      SavedBy::kNorm,    false};
constexpr SavedTensor kQkvTensor{"q, k, v",       2,       kQkv,
                                 kTensorParallel, kAlways, SavedBy::kProjections};
constexpr SavedTensor kAttentionOutput{"attention output", 2,       kQuery,
                                       kTensorParallel,    kAlways, SavedBy::kProjections};
constexpr SavedTensor kLogSumExp{"attention log-sum-exp", 4,    kHeads, kTensorParallel, kFlash,
                                 SavedBy::kAttentionCore, false};
constexpr SavedTensor kSoftmax{"softmax",       2,        kHeadsTimesSpan,
                               kTensorParallel, kUnfused, SavedBy::kAttentionCore};
constexpr SavedTensor kSoftmaxDropout{
    "softmax dropout output and mask", 3,    kHeadsTimesSpan, kTensorParallel, kUnfusedDropout,
    SavedBy::kAttentionCore,           false};
constexpr SavedTensor kFc1Output{"fc1 output", 2, kFc1, kTensorParallel, kAlways, SavedBy::kMlp};
constexpr SavedTensor kDropoutMasks{
    "dropout masks", 2, kHidden, kSequenceParallel, kHiddenDropout, SavedBy::kResidual, false};

constexpr std::array<SavedTensor, 13> kBf16{{
    kNorm1Input,
    {"norm 1 output", 2, kHidden, kSequenceParallel, kWeightGradient, SavedBy::kNorm},
    kQkvTensor,
    kAttentionOutput,
    kLogSumExp,
    kSoftmax,
    kSoftmaxDropout,
    kNorm2Input,
    {"norm 2 output", 2, kHidden, kSequenceParallel, kWeightGradient, SavedBy::kNorm},
    kFc1Output,
    {"activation output", 2, kFfn, kTensorParallel, kWeightGradient, SavedBy::kMlp},
    kDropoutMasks,
    kNormStatistics,
}};

// GEMM inputs are kept as one fp8 copy; the attention output besides its 16-bit self.
constexpr std::array<SavedTensor, 14> kFp8{{
    kNorm1Input,
    {"norm 1 output, fp8", 1, kHidden, kSequenceParallel, kWeightGradient, SavedBy::kNorm, false},
    kQkvTensor,
    kAttentionOutput,
    {"attention output, fp8", 1, kQuery, kTensorParallel, kWeightGradient, SavedBy::kProjections,
     false},
    kLogSumExp,
    kSoftmax,
    kSoftmaxDropout,
    kNorm2Input,
    {"norm 2 output, fp8", 1, kHidden, kSequenceParallel, kWeightGradient, SavedBy::kNorm, false},
    kFc1Output,
    {"activation output, fp8", 1, kFfn, kTensorParallel, kWeightGradient, SavedBy::kMlp, false},
    kDropoutMasks,
    kNormStatistics,
}};

constexpr SavedTensorTable kBf16Table{"megatron-te bf16", kBf16};
constexpr SavedTensorTable kFp8Table{"megatron-te fp8", kFp8};

}  // namespace

const SavedTensorTable& MegatronTransformerEngine(DType precision) {
  return precision == DType::kFp8 ? kFp8Table : kBf16Table;
}

}  // namespace isthmus::plan
