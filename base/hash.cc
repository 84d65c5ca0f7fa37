#include "base/hash.h"

#include <bit>

#include <fmt/format.h>

namespace isthmus::base {
namespace {

// `size` <= 8 bytes as a little-endian number, the same on every architecture.
std::uint64_t LoadWord(const std::byte* bytes, std::size_t size) {
  std::uint64_t word = 0;
  for (std::size_t position = 0; position < size; ++position) {
    word |= std::to_integer<std::uint64_t>(bytes[position]) << (8U * position);
  }
  return word;
}

}  // namespace

HashBuilder& HashBuilder::Add(double value) {
  return Add(std::bit_cast<std::uint64_t>(value == 0.0 ? 0.0 : value));
}

HashBuilder& HashBuilder::Add(std::string_view text) {
  return AddBytes(std::as_bytes(std::span(text.data(), text.size())));
}

HashBuilder& HashBuilder::AddBytes(std::span<const std::byte> bytes) {
  Add(static_cast<std::uint64_t>(bytes.size()));
  constexpr std::size_t kWord = 8;
  std::size_t position = 0;
  for (; position + kWord <= bytes.size(); position += kWord) {
    Add(LoadWord(bytes.data() + position, kWord));
  }
  if (position < bytes.size()) Add(LoadWord(bytes.data() + position, bytes.size() - position));
  return *this;
}

std::string HashText(std::uint64_t digest) { return fmt::format("{:016x}", digest); }

}  // namespace isthmus::base
