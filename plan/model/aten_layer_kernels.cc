#include "plan/model/aten_layer_kernels.h"

#include <array>

namespace isthmus::plan {
namespace {

using enum LayerDirection;
using enum LayerWidth;
using enum LayerWhen;
using Slot = LayerSlot;
using Class = MemoryClass;

// RMSNorm: square 4, mean 2, product with the inverse root 4, product with the scale 4, and two on
// a number per token; backward: the normed input again 4, gradient of the scale 8, product with the
// scale 4, product with the normed 6, mean 2, product 4, difference 6, product 4. Rotary: a copy of
// q, k and v; of both halves of a head two products, a sum or difference and a copy; cosines and
// sines in a dozen of small ones. The gate backward: product of the gradient 6, of SiLU 6, SiLU
// again 4, product 6, both halves into one 8.
constexpr std::array kAten = {
    LayerKernel{Slot::kNorm, kForward, Class::kNorm, 4, kSharded, 1, kPlain},
    LayerKernel{Slot::kNorm, kForward, Class::kElementwise, 14, kSharded, 6, kGated},
    LayerKernel{Slot::kRotary, kForward, Class::kHeadNorm, 4, kRotated, 6, kQkNorm},
    LayerKernel{Slot::kRotary, kForward, Class::kElementwise, 4, kQkv, 1, kRotary},
    LayerKernel{Slot::kRotary, kForward, Class::kElementwise, 18, kRotated, 20, kRotary},
    LayerKernel{Slot::kResidual, kForward, Class::kElementwise, 6, kSharded},
    LayerKernel{Slot::kActivation, kForward, Class::kElementwise, 10, kFfn, 2, kGated},
    LayerKernel{Slot::kActivation, kForward, Class::kElementwise, 4, kFfn, 1, kPlain},

    // Two more add the gradients of scale and shift to the main gradients.
    LayerKernel{Slot::kNorm, kBackward, Class::kNormBackward, 6, kSharded, 3, kPlain},
    LayerKernel{Slot::kNorm, kBackward, Class::kElementwise, 38, kSharded, 11, kGated},
    LayerKernel{Slot::kRotary, kBackward, Class::kElementwise, 4, kQkv, 1, kRotary},
    LayerKernel{Slot::kRotary, kBackward, Class::kElementwise, 18, kRotated, 9, kRotary},
    LayerKernel{Slot::kRotary, kBackward, Class::kHeadNormBackward, 6, kRotated, 9, kQkNorm},
    LayerKernel{Slot::kResidual, kBackward, Class::kElementwise, 6, kSharded},
    LayerKernel{Slot::kActivation, kBackward, Class::kElementwise, 30, kFfn, 5, kGated},
    LayerKernel{Slot::kActivation, kBackward, Class::kElementwise, 6, kFfn, 1, kPlain},
};

constexpr LayerKernelTable kAtenTable{"ATen", kAten, true};

}  // namespace

const LayerKernelTable& AtenLayerKernels() { return kAtenTable; }

}  // namespace isthmus::plan
