#pragma once

#include <cstdint>
#include <string>

/// Axes of a Grid and sets of them.
namespace isthmus::plan {

/// A named direction of a Grid. Data parallelism is two axes: the ranks that shard one copy of the
/// optimizer state (`kDpShard`) and the copies of it (`kDpReplica`, several optimizer instances).
enum class Axis : std::uint8_t { kTp, kCp, kEp, kDpShard, kDpReplica, kPp };
inline constexpr int kNumAxes = 6;

/// A set of axes, a bit for each. Groups are named by the axes their ranks differ in.
class AxisSet {
 public:
  constexpr AxisSet() = default;
  constexpr AxisSet(Axis axis)  // NOLINT(google-explicit-constructor): an axis is a set of one
      : bits_(static_cast<std::uint8_t>(1U << static_cast<unsigned>(axis))) {}
  constexpr bool has(Axis axis) const { return (bits_ & AxisSet(axis).bits_) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr std::uint8_t bits() const { return bits_; }
  /// All axes that are not in the set.
  constexpr AxisSet Others() const {
    AxisSet others;
    others.bits_ = static_cast<std::uint8_t>(~bits_ & ((1U << kNumAxes) - 1U));
    return others;
  }
  friend constexpr AxisSet operator|(AxisSet a, AxisSet b) {
    AxisSet both;
    both.bits_ = static_cast<std::uint8_t>(a.bits_ | b.bits_);
    return both;
  }
  friend constexpr auto operator<=>(AxisSet, AxisSet) = default;

 private:
  std::uint8_t bits_ = 0;
};

inline constexpr AxisSet kTp = Axis::kTp;
inline constexpr AxisSet kCp = Axis::kCp;
inline constexpr AxisSet kEp = Axis::kEp;
inline constexpr AxisSet kDpShard = Axis::kDpShard;
inline constexpr AxisSet kDpReplica = Axis::kDpReplica;
inline constexpr AxisSet kDp = kDpShard | kDpReplica;
inline constexpr AxisSet kPp = Axis::kPp;

/// "tp", "cp+dp", … in the order tp cp ep dp pp; a lone half of dp is "dp_shard" or "dp_replica".
std::string ToText(AxisSet axes);

}  // namespace isthmus::plan
