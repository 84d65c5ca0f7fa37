#include "traces/internal/json_text.h"

#include <nlohmann/json.hpp>

namespace isthmus::traces::internal {

std::string JsonText(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string JsonNumber(double value) { return nlohmann::json(value).dump(); }

}  // namespace isthmus::traces::internal
