#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace isthmus::base {

/// The first byte that no text file holds: not UTF-8, or a control character but line breaks and
/// tabs. (Those of a terminal, as ESC, would reach it with messages that quote a file.)
/// Cost: O(|content|).
std::optional<std::size_t> FindBinary(std::string_view content);

/// Characters of a text in UTF-8: what fmt pads by.
std::size_t NumCharacters(std::string_view text);

/// Without the mark of UTF-8 ("byte order mark") that some editors write first.
std::string_view WithoutByteOrderMark(std::string_view content);

}  // namespace isthmus::base
