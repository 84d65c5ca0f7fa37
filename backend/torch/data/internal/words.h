#pragma once

#include <cstdint>

/// The words of the captions task, by token id.
namespace isthmus::backend::internal {

enum Word : std::int64_t {
  kPad,
  kBegin,
  kEnd,
  kImage,  // placeholder
  kSound,  // placeholder
  kDescribe,
  kCount,
  kFirstSize,                             // small, large
  kFirstColour = kFirstSize + 2,          // red, green, blue, yellow
  kFirstForm = kFirstColour + 4,          // circle, square, triangle, cross
  kFirstVertical = kFirstForm + 4,        // top, bottom
  kFirstHorizontal = kFirstVertical + 2,  // left, right
  kFirstLoudness = kFirstHorizontal + 2,  // quiet, loud
  kFirstPitch = kFirstLoudness + 2,       // low, middle, high
  kFirstContour = kFirstPitch + 3,        // steady, rising, falling
  kFirstNumber = kFirstContour + 3,       // zero to nine
  kNumWords = kFirstNumber + 10,
};

}  // namespace isthmus::backend::internal
