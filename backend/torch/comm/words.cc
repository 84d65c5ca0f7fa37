#include "backend/torch/comm/words.h"

#include <c10/util/Exception.h>

namespace isthmus::backend {

std::string WordsOf(const std::exception& error) {
  const auto* known = dynamic_cast<const c10::Error*>(&error);
  return known != nullptr ? known->what_without_backtrace() : error.what();
}

}  // namespace isthmus::backend
