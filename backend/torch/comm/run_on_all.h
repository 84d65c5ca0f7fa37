#pragma once

#include <functional>

#include "backend/torch/comm/communicator.h"

namespace isthmus::backend {

/// Runs `work` on every rank and throws on all of them when it threw on one: the exception of the
/// lowest such rank, with the rank in front: base::Error as it was, anything else as base::IoError.
void RunOnAll(Communicator& control, const std::function<void()>& work);

}  // namespace isthmus::backend
