#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "backend/torch/data/sample.h"

namespace isthmus::backend {

struct TaskOptions {
  std::uint64_t seed = 0;
};

/// Synthetic training data: sample `index` is a function of (seed, index) and of the shape, so that
/// every rank draws what it needs and every layout trains on the same data. It has as many images
/// and clips as the shape says; without any it is text alone.
///
/// Thread-safe: Draw() has no state.
class Task {
 public:
  virtual ~Task() = default;
  virtual Sample Draw(std::int64_t index) const = 0;
};

/// "captions": images of drawn shapes (circle, square, triangle, cross; colour, size and place) and
/// clips of tones (pitch, loudness, contour), and the words that describe them as the answer;
/// text-only samples count. It can be learnt: every word of an answer can be seen or heard, or
/// follows from the words before it.
/// "random": patches, tokens and labels without rhyme or reason; every position counts.
/// Throws base::Error for another name, and where the shape has no room for answer or words.
std::unique_ptr<Task> MakeTask(std::string_view name, const SampleShape& shape,
                               const TaskOptions& options);

}  // namespace isthmus::backend
