#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace isthmus::reports {

/// An object as answers print it. What is no UTF-8, as names of files need not be, is replaced.
inline std::string JsonText(const nlohmann::ordered_json& json) {
  constexpr int kIndent = 2;
  return json.dump(kIndent, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace isthmus::reports
