#pragma once

#include <string>
#include <string_view>

namespace isthmus::traces::internal {

/// The text as a JSON string with its quotes; bytes that are no UTF-8 become U+FFFD.
std::string JsonText(std::string_view text);

/// The number as JSON: the shortest digits that give it back, null if it is not finite.
std::string JsonNumber(double value);

}  // namespace isthmus::traces::internal
