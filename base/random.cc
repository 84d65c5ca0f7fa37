#include "base/random.h"

#include <bit>
#include <cmath>

#include "base/check.h"
#include "base/hash.h"

namespace isthmus::base {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014): advances `state` and gives the next 64 bits.
std::uint64_t SplitMix64(std::uint64_t& state) {
  state += 0x9E3779B97F4A7C15U;
  std::uint64_t mixed = state;
  mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBU;
  return mixed ^ (mixed >> 31U);
}

}  // namespace

RandomStream::RandomStream(std::uint64_t seed, std::string_view purpose) {
  std::uint64_t state = HashBuilder(seed).Add(purpose).digest();
  for (std::uint64_t& word : state_) word = SplitMix64(state);
}

std::uint64_t RandomStream::Next() {
  auto& [s0, s1, s2, s3] = state_;
  const std::uint64_t result = std::rotl(s0 + s3, 23) + s0;
  const std::uint64_t shifted = s1 << 17U;
  s2 ^= s0;
  s3 ^= s1;
  s1 ^= s2;
  s0 ^= s3;
  s2 ^= shifted;
  s3 = std::rotl(s3, 45);
  return result;
}

std::int64_t RandomStream::UniformInt(std::int64_t low, std::int64_t high) {
  ISTHMUS_CHECK(low <= high, "empty range [{}, {}]", low, high);
  const std::uint64_t span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  if (span == UINT64_MAX) return static_cast<std::int64_t>(Next());
  // Draws below 2^64 mod n would favour the small remainders, so they are drawn again.
  const std::uint64_t num_values = span + 1;
  const std::uint64_t threshold = (0 - num_values) % num_values;
  std::uint64_t bits = Next();
  while (bits < threshold) bits = Next();
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + bits % num_values);
}

double RandomStream::UniformReal() { return static_cast<double>(Next() >> 11U) * 0x1.0p-53; }

double RandomStream::Normal(double mean, double stddev) {
  ISTHMUS_CHECK(stddev >= 0.0, "standard deviation {}", stddev);
  double u = 0.0;
  double square = 0.0;
  do {
    u = 2.0 * UniformReal() - 1.0;
    const double v = 2.0 * UniformReal() - 1.0;
    square = u * u + v * v;
  } while (square >= 1.0 || square == 0.0);
  return mean + stddev * u * std::sqrt(-2.0 * std::log(square) / square);
}

std::size_t RandomStream::PickIndex(std::size_t size) {
  ISTHMUS_CHECK(size > 0, "a choice among nothing");
  return static_cast<std::size_t>(UniformInt(0, static_cast<std::int64_t>(size) - 1));
}

}  // namespace isthmus::base
