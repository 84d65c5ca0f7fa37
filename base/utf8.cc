#include "base/utf8.h"

#include <algorithm>
#include <cstdint>

namespace isthmus::base {
namespace {

// The length of the UTF-8 sequence at `position`, 0 if there is none.
std::size_t Utf8Length(std::string_view text, std::size_t position) {
  const auto byte = [&](std::size_t index) {
    return index < text.size() ? static_cast<std::uint8_t>(text[index]) : std::uint8_t{0};
  };
  const std::uint8_t first = byte(position);
  if (first < 0x80U) return 1;
  const std::size_t length = first >= 0xF0U ? 4 : first >= 0xE0U ? 3 : 2;
  if (first < 0xC2U || first > 0xF4U) return 0;
  for (std::size_t index = 1; index < length; ++index) {
    if ((byte(position + index) & 0xC0U) != 0x80U) return 0;
  }
  const bool is_control = first == 0xC2U && byte(position + 1) < 0xA0U;  // of ISO 6429's 8-bit set
  return is_control ? 0 : length;
}

}  // namespace

std::optional<std::size_t> FindBinary(std::string_view content) {
  for (std::size_t position = 0; position < content.size();) {
    const auto byte = static_cast<std::uint8_t>(content[position]);
    const bool is_control =
        (byte < 0x20U && byte != '\n' && byte != '\r' && byte != '\t') || byte == 0x7FU;
    const std::size_t length = is_control ? 0 : Utf8Length(content, position);
    if (length == 0) return position;
    position += length;
  }
  return std::nullopt;
}

std::size_t NumCharacters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }));
}

std::string_view WithoutByteOrderMark(std::string_view content) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (content.starts_with(kMark)) content.remove_prefix(kMark.size());
  return content;
}

}  // namespace isthmus::base
