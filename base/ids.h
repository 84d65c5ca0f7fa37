#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace isthmus::base {

/// The index of one thing of the kind `Tag` names, from 0 and dense.
///
/// Ids of different kinds don't mix, nor do ids and numbers. There is no "invalid" id: use
/// std::optional. Folders name their own kinds: `using OpId = base::Id<struct OpIdTag>;`.
template <typename Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::int32_t value) : value_(value) {}
  constexpr explicit Id(std::size_t value) : value_(static_cast<std::int32_t>(value)) {}

  constexpr std::int32_t value() const { return value_; }
  /// For subscripts of containers.
  constexpr std::size_t index() const { return static_cast<std::size_t>(value_); }

  /// The next id, for loops.
  constexpr Id& operator++() {
    ++value_;
    return *this;
  }

  friend constexpr bool operator==(Id, Id) = default;
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  std::int32_t value_ = 0;
};

using Rank = Id<struct RankTag>;          ///< A process of the job.
using NodeId = Id<struct NodeIdTag>;      ///< A host of the cluster.
using DeviceId = Id<struct DeviceIdTag>;  ///< A device of the cluster: GPU, switch, NIC, memory.
using LinkId = Id<struct LinkIdTag>;      ///< A link between two devices.

}  // namespace isthmus::base

template <typename Tag>
struct std::hash<isthmus::base::Id<Tag>> {
  std::size_t operator()(isthmus::base::Id<Tag> id) const noexcept { return id.index(); }
};
