#pragma once

#include <cmath>
#include <compare>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace isthmus::base {

/// A number with a unit: a strong type over one arithmetic representation.
///
/// Quantities of one unit add, subtract and compare; a plain number scales them; dividing two gives
/// a plain double. The few products and quotients between units that mean something are listed
/// below; everything else does not compile. A value type without invariant.
template <typename Tag, typename Rep>
class Quantity {
 public:
  constexpr Quantity() = default;

  /// Takes any number that does not lose its fraction: integers for integer units, any for real.
  template <typename T>
  requires(std::integral<T> || (std::floating_point<T> &&
                                std::floating_point<Rep>)) constexpr explicit Quantity(T value)
      : value_(static_cast<Rep>(value)) {}

  /// The bare number in the unit of the type's name.
  constexpr Rep value() const { return value_; }

  friend constexpr bool operator==(Quantity, Quantity) = default;
  friend constexpr auto operator<=>(Quantity, Quantity) = default;

  constexpr Quantity& operator+=(Quantity other) { return *this = *this + other; }
  constexpr Quantity& operator-=(Quantity other) { return *this = *this - other; }

  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(static_cast<Rep>(a.value_ + b.value_));
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(static_cast<Rep>(a.value_ - b.value_));
  }
  friend constexpr Quantity operator-(Quantity a) { return Quantity(static_cast<Rep>(-a.value_)); }

  /// Scaling. An integer unit scales by integers only (see ScaleBytes for fractions); its division
  /// truncates.
  template <typename T>
  requires(std::integral<T> ||
           (std::floating_point<T> && std::floating_point<Rep>)) friend constexpr Quantity
  operator*(Quantity a, T factor) {
    return Quantity(static_cast<Rep>(a.value_ * static_cast<Rep>(factor)));
  }
  template <typename T>
  requires(std::integral<T> ||
           (std::floating_point<T> && std::floating_point<Rep>)) friend constexpr Quantity
  operator*(T factor, Quantity a) {
    return a * factor;
  }
  template <typename T>
  requires(std::integral<T> ||
           (std::floating_point<T> && std::floating_point<Rep>)) friend constexpr Quantity
  operator/(Quantity a, T divisor) {
    return Quantity(static_cast<Rep>(a.value_ / static_cast<Rep>(divisor)));
  }

  /// The ratio of two quantities of one unit, always real.
  friend constexpr double operator/(Quantity a, Quantity b) {
    return static_cast<double>(a.value_) / static_cast<double>(b.value_);
  }

 private:
  Rep value_{};
};

using Bytes = Quantity<struct BytesTag, std::int64_t>;
using Flops = Quantity<struct FlopsTag, double>;  // A step can exceed 2^63.
using Seconds = Quantity<struct SecondsTag, double>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag, double>;

constexpr Seconds operator/(Bytes bytes, BytesPerSecond rate) {
  return Seconds(static_cast<double>(bytes.value()) / rate.value());
}
constexpr BytesPerSecond operator/(Bytes bytes, Seconds time) {
  return BytesPerSecond(static_cast<double>(bytes.value()) / time.value());
}
constexpr Seconds operator/(Flops flops, FlopsPerSecond rate) {
  return Seconds(flops.value() / rate.value());
}
constexpr FlopsPerSecond operator/(Flops flops, Seconds time) {
  return FlopsPerSecond(flops.value() / time.value());
}
constexpr Flops operator*(FlopsPerSecond rate, Seconds time) {
  return Flops(rate.value() * time.value());
}
constexpr Flops operator*(Seconds time, FlopsPerSecond rate) { return rate * time; }

/// `bytes` times a real factor, to the nearest byte.
inline Bytes ScaleBytes(Bytes bytes, double factor) {
  return Bytes(std::llround(static_cast<double>(bytes.value()) * factor));
}

/// What a transfer at `rate` moves in `time`, to the nearest byte.
inline Bytes BytesMoved(BytesPerSecond rate, Seconds time) {
  return Bytes(std::llround(rate.value() * time.value()));
}

}  // namespace isthmus::base
