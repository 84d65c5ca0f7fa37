#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace isthmus::base {

/// A stream of random numbers that is a function of a seed and the name of its purpose.
///
/// Every consumer asks for a stream of its own ("workload.images_per_sample"), so a new consumer
/// doesn't shift the numbers of the others. The generator is xoshiro256++ (Blackman and Vigna 2018)
/// with SplitMix64 for its state. Integers, reals and distributions are mapped here and not by the
/// standard library, whose mappings differ between implementations.
/// A value: copies go on independently. Not thread-safe.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::string_view purpose);

  /// 64 random bits.
  std::uint64_t Next();

  /// Uniform in [low, high], without bias. Needs low <= high.
  std::int64_t UniformInt(std::int64_t low, std::int64_t high);

  /// Uniform in [0, 1), a multiple of 2^-53.
  double UniformReal();

  /// Normally distributed (polar method of Marsaglia). Needs stddev >= 0.
  double Normal(double mean, double stddev);

  /// True with the given probability in [0, 1].
  bool Chance(double probability) { return UniformReal() < probability; }

  /// One of the items, all equally likely. Needs a non-empty span.
  template <typename T>
  const T& Pick(std::span<const T> items) {
    return items[PickIndex(items.size())];
  }

  /// Puts the items into a random order, all orders equally likely (Fisher and Yates).
  template <typename T>
  void Shuffle(std::span<T> items) {
    for (std::size_t left = items.size(); left > 1; --left) {
      std::swap(items[left - 1], items[PickIndex(left)]);
    }
  }

 private:
  std::size_t PickIndex(std::size_t size);

  std::array<std::uint64_t, 4> state_{};
};

}  // namespace isthmus::base
