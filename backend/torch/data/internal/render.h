#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"

/// Pictures and sounds of the captions task, and the words that describe them.
namespace isthmus::backend::internal {

/// Draws one image of `tokens` patches of `width` values into `patches` and returns its words:
/// size, colour, form, vertical and horizontal place.
///
/// Patches lie in rows, as square as can be; a patch has three channels where width is a multiple
/// of three, else one. Values are in [-1, 1] and a little noise.
std::vector<std::int64_t> DrawImage(base::RandomStream& random, std::int64_t tokens,
                                    std::int64_t width, std::span<float> patches);

/// The same for a clip of `tokens` frames of a spectrum of `width` bands: loudness, pitch, contour.
std::vector<std::int64_t> DrawClip(base::RandomStream& random, std::int64_t tokens,
                                   std::int64_t width, std::span<float> frames);

}  // namespace isthmus::backend::internal
