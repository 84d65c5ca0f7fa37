#include "plan/model/layer_kernels.h"

#include <array>

namespace isthmus::plan {
namespace {

using enum LayerDirection;
using enum LayerWidth;
using enum LayerWhen;
using Slot = LayerSlot;
using Class = MemoryClass;

// Residuals, QK-norm and fp8 casts are the same in all code. A mask of dropout is a byte, written
// or read. A cast with transpose reads 2 B and writes two copies of 1 B.
constexpr LayerKernel kResidualAdd{Slot::kResidual, kForward, Class::kElementwise, 6, kSharded};
constexpr LayerKernel kResidualMask{Slot::kResidual, kForward, Class::kElementwise, 1,
                                    kSharded,        0,        kHiddenDropout,      false};
constexpr LayerKernel kResidualBackward{Slot::kResidual, kBackward, Class::kElementwise, 6,
                                        kSharded};
constexpr LayerKernel kResidualMaskBackward{Slot::kResidual, kBackward, Class::kElementwise, 1,
                                            kSharded,        0,         kHiddenDropout,      false};
// Of q and of k.
constexpr LayerKernel kHeadNorm{Slot::kRotary, kForward, Class::kHeadNorm, 4, kRotated, 2, kQkNorm};
constexpr LayerKernel kHeadNormBackward{
    Slot::kRotary, kBackward, Class::kHeadNormBackward, 6, kRotated, 2, kQkNorm};
constexpr LayerKernel kFusedNorm{Slot::kNorm, kForward, Class::kNorm, 4, kSharded};
// The second kernel adds up the gradient of the scale.
constexpr LayerKernel kFusedNormBackward{Slot::kNorm, kBackward, Class::kNormBackward,
                                         6,           kSharded,  2};
constexpr LayerKernel kPlainActivation{
    Slot::kActivation, kForward, Class::kElementwise, 4, kFfn, 1, kPlain};
constexpr LayerKernel kPlainActivationBackward{
    Slot::kActivation, kBackward, Class::kElementwise, 6, kFfn, 1, kPlain};
constexpr LayerKernel kQueryCopy{Slot::kRotary, kForward, Class::kElementwise, 4, kQuery};
constexpr LayerKernel kQkvCopyBackward{Slot::kRotary, kBackward, Class::kElementwise, 4, kQkv};

constexpr std::array kFused = {
    kFusedNorm,
    LayerKernel{Slot::kNorm, kForward, Class::kCast, 4, kSharded, 1, kFp8, false},
    kHeadNorm,
    LayerKernel{Slot::kRotary, kForward, Class::kElementwise, 4, kRotated, 2, kRotary},
    kQueryCopy,
    LayerKernel{Slot::kAttentionOutput, kForward, Class::kCast, 4, kQuery, 1, kFp8, false},
    kResidualAdd,
    kResidualMask,
    LayerKernel{Slot::kActivation, kForward, Class::kElementwise, 6, kFfn, 1, kGated},
    kPlainActivation,
    LayerKernel{Slot::kActivation, kForward, Class::kCast, 4, kFfn, 1, kFp8, false},

    kFusedNormBackward,
    LayerKernel{Slot::kRotary, kBackward, Class::kElementwise, 4, kRotated, 2, kRotary},
    kHeadNormBackward,
    kQkvCopyBackward,
    LayerKernel{Slot::kRotary, kBackward, Class::kCast, 4, kQkv, 1, kFp8, false},
    kResidualBackward,
    kResidualMaskBackward,
    LayerKernel{Slot::kResidual, kBackward, Class::kCast, 4, kHidden, 1, kFp8, false},
    LayerKernel{Slot::kActivation, kBackward, Class::kElementwise, 10, kFfn, 1, kGated},
    kPlainActivationBackward,
    LayerKernel{Slot::kActivation, kBackward, Class::kCast, 4, kFc1, 1, kFp8, false},
};

// Rotary in eager code turns q and k in fp32: two casts up (2 r 4 w), product with cosine, rotation
// of halves, product with sine, sum, cast down: 18 B an element. SiLU (2 r 2 w), then the product
// of the gate (4 r 2 w).
constexpr LayerKernel kEagerRotary{Slot::kRotary, kForward, Class::kElementwise, 18, kRotated, 8,
                                   kRotary};
constexpr LayerKernel kEagerRotaryBackward{
    Slot::kRotary, kBackward, Class::kElementwise, 27, kRotated, 13, kRotary};
constexpr LayerKernel kEagerGate{
    Slot::kActivation, kForward, Class::kElementwise, 10, kFfn, 2, kGated};
constexpr LayerKernel kEagerGateBackward{
    Slot::kActivation, kBackward, Class::kElementwise, 20, kFfn, 4, kGated};

constexpr std::array kEager = {
    kFusedNorm,         kHeadNorm,
    kEagerRotary,       kQueryCopy,
    kResidualAdd,       kResidualMask,
    kEagerGate,         kPlainActivation,
    kFusedNormBackward, kEagerRotaryBackward,
    kHeadNormBackward,  kQkvCopyBackward,
    kResidualBackward,  kResidualMaskBackward,
    kEagerGateBackward, kPlainActivationBackward,
};

// RMSNorm op by op in fp32: cast up 6 B, square 8, mean 4, product with the root 8, cast down 6,
// product with the scale 4 …; its backward about twice that.
constexpr LayerKernel kOpByOpNorm{Slot::kNorm, kForward, Class::kElementwise, 32, kSharded, 15};
constexpr LayerKernel kOpByOpNormBackward{Slot::kNorm, kBackward, Class::kElementwise,
                                          66,          kSharded,  22};

constexpr std::array kEagerNorm = {
    kOpByOpNorm,         kHeadNorm,
    kEagerRotary,        kQueryCopy,
    kResidualAdd,        kResidualMask,
    kEagerGate,          kPlainActivation,
    kOpByOpNormBackward, kEagerRotaryBackward,
    kHeadNormBackward,   kQkvCopyBackward,
    kResidualBackward,   kResidualMaskBackward,
    kEagerGateBackward,  kPlainActivationBackward,
};

// Behind a row-parallel product bias (2 r 2 w), dropout (2 r 2 w and the mask), residual (4 r 2 w);
// backward dropout, the gradient of the bias (2 r), the sum of both ways. The activation adds its
// bias first (plain), or has SiLU and product apart (gated).
constexpr LayerKernel kBiasAdd{Slot::kResidual, kForward, Class::kElementwise, 4, kSharded};
constexpr LayerKernel kDropout{Slot::kResidual, kForward, Class::kElementwise, 4,
                               kSharded,        1,        kHiddenDropout};
constexpr LayerKernel kDropoutBackward{Slot::kResidual, kBackward, Class::kElementwise, 4,
                                       kSharded,        1,         kHiddenDropout};
constexpr LayerKernel kBiasGradient{Slot::kResidual, kBackward, Class::kElementwise, 2, kSharded};

constexpr std::array kUnfused = {
    kFusedNorm,
    kHeadNorm,
    LayerKernel{Slot::kRotary, kForward, Class::kElementwise, 4, kRotated, 2, kRotary},
    kQueryCopy,
    kBiasAdd,
    kDropout,
    kResidualMask,
    kResidualAdd,
    LayerKernel{Slot::kActivation, kForward, Class::kElementwise, 10, kFfn, 2, kGated},
    LayerKernel{Slot::kActivation, kForward, Class::kElementwise, 8, kFfn, 2, kPlain},

    kFusedNormBackward,
    LayerKernel{Slot::kRotary, kBackward, Class::kElementwise, 4, kRotated, 2, kRotary},
    kHeadNormBackward,
    kQkvCopyBackward,
    kResidualBackward,
    kDropoutBackward,
    kResidualMaskBackward,
    kBiasGradient,
    LayerKernel{Slot::kActivation, kBackward, Class::kElementwise, 16, kFfn, 2, kGated},
    LayerKernel{Slot::kActivation, kBackward, Class::kElementwise, 8, kFfn, 2, kPlain},
};

constexpr LayerKernelTable kFusedTable{"fused", kFused, true};
constexpr LayerKernelTable kUnfusedTable{"unfused", kUnfused, false};
constexpr LayerKernelTable kEagerTable{"eager", kEager, false};
constexpr LayerKernelTable kEagerNormTable{"eager, norm op by op", kEagerNorm, false};

}  // namespace

const LayerKernelTable& FusedLayerKernels() { return kFusedTable; }
const LayerKernelTable& UnfusedLayerKernels() { return kUnfusedTable; }
const LayerKernelTable& EagerLayerKernels() { return kEagerTable; }
const LayerKernelTable& EagerNormLayerKernels() { return kEagerNormTable; }

}  // namespace isthmus::plan
