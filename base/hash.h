#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace isthmus::base {

/// A 64-bit fingerprint of a sequence of values, equal on every machine and in every build.
///
/// The order of the values counts, and so do the borders between texts ("ab","c" differs from
/// "a","bc"). Each value goes through one round of xxHash64 (multiply, rotate, multiply), which is
/// a bijection of the state; the digest avalanches it. For telling files and programs apart, not
/// against an adversary. Cost: a few cycles per 8 bytes.
class HashBuilder {
 public:
  explicit constexpr HashBuilder(std::uint64_t seed = 0) : state_(seed + kPrime3) {}

  constexpr HashBuilder& Add(std::uint64_t value) {
    std::uint64_t mixed = state_ ^ (value * kPrime2);
    mixed = (mixed << 31U) | (mixed >> 33U);
    state_ = mixed * kPrime1 + kPrime3;
    return *this;
  }
  constexpr HashBuilder& Add(std::int64_t value) { return Add(static_cast<std::uint64_t>(value)); }
  constexpr HashBuilder& Add(std::int32_t value) { return Add(static_cast<std::int64_t>(value)); }
  constexpr HashBuilder& Add(std::uint32_t value) { return Add(static_cast<std::uint64_t>(value)); }
  constexpr HashBuilder& Add(bool value) { return Add(static_cast<std::uint64_t>(value ? 1 : 0)); }
  /// By its bits, -0.0 as 0.0.
  HashBuilder& Add(double value);
  HashBuilder& Add(std::string_view text);
  HashBuilder& Add(const char* text) { return Add(std::string_view(text)); }
  /// The bytes and their number.
  HashBuilder& AddBytes(std::span<const std::byte> bytes);

  /// Everything added so far; adding may go on.
  constexpr std::uint64_t digest() const {
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 33U)) * kPrime2;
    mixed = (mixed ^ (mixed >> 29U)) * kPrime3;
    return mixed ^ (mixed >> 32U);
  }

 private:
  // The odd 64-bit constants of xxHash64.
  static constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87U;
  static constexpr std::uint64_t kPrime2 = 0xC2B2AE3D27D4EB4FU;
  static constexpr std::uint64_t kPrime3 = 0x165667B19E3779F9U;

  std::uint64_t state_;
};

/// 16 lowercase hexadecimal digits.
std::string HashText(std::uint64_t digest);

}  // namespace isthmus::base
