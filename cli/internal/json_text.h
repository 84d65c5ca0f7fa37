#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace isthmus::cli::internal {

// An object as --json prints it. What is no UTF-8, as names of files need not be, is replaced.
inline std::string JsonText(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace isthmus::cli::internal
