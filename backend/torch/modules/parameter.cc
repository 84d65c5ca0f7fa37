#include "backend/torch/modules/parameter.h"

#include <functional>
#include <numeric>

namespace isthmus::backend {

std::int64_t Parameter::num_elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

}  // namespace isthmus::backend
