#pragma once

#include <string>
#include <vector>

#include "studies/kernel_times.h"
#include "studies/predict.h"
#include "studies/validate.h"

namespace isthmus::studies {

/// Where the step of one row goes.
struct Explanation {
  RowResult row;
  Prediction prediction;  ///< of the scored scenario (of an open range its first end)
  std::vector<KernelTime> kernels;
};

/// The row of `options.files` with that id, predicted and taken apart. Throws base::Error when no
/// file holds it or it can't be predicted (with the reason).
Explanation ExplainRow(const ValidateOptions& options, const std::string& row_id);

/// For the terminal: measured, predicted, strict, what is open, uses of time, exposed
/// communication, the longest kernels, memory by category.
std::string RenderText(const Explanation& explanation);
/// The same as one JSON object: the row as in `validate --json`, with uses, exposed, kernels,
/// memory.
std::string RenderJson(const Explanation& explanation);

}  // namespace isthmus::studies
