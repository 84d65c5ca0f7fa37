#include "sim/cost/gloo_model.h"

#include <array>
#include <charconv>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace isthmus::sim {
namespace {

using plan::CollectiveKind;

constexpr std::array<const char*, 5> kKinds = {"all_reduce", "all_gather", "reduce_scatter",
                                               "all_to_all", "broadcast"};

const char* KindOf(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduce:
      return "all_reduce";
    case CollectiveKind::kAllGather:
      return "all_gather";
    case CollectiveKind::kReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kAllToAllV:
      return "all_to_all";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kRingExchange:
      return "p2p";
  }
  return "";
}

// The n of keys `gloo.<kind>.ranks_<n>.…`.
std::map<int, std::string> RanksOf(const profiles::Profile& profile, const std::string& kind) {
  const std::string prefix = fmt::format("gloo.{}.ranks_", kind);
  std::map<int, std::string> ranks;
  for (const std::string& key : profile.KeysUnder(prefix)) {
    int num_ranks = 0;
    const char* begin = key.data() + prefix.size();
    const auto [end, error] = std::from_chars(begin, key.data() + key.size(), num_ranks);
    if (error == std::errc() && end != begin && num_ranks > 1)
      ranks[num_ranks] = fmt::format("{}{}", prefix, num_ranks);
  }
  return ranks;
}

}  // namespace

GlooModel::GlooModel(const profiles::Profile& profile, Staging staging)
    : profile_name_(profile.name()),
      p2p_{LineTable(profile, "gloo.p2p.wait", "b", "s"),
           LineTable(profile, "gloo.p2p.core", "b", "s")},
      staging_(staging),
      copy_latency_(profile.Value("copy.latency", "s")) {
  for (const char* kind : kKinds) {
    for (const auto& [num_ranks, prefix] : RanksOf(profile, kind)) {
      collectives_[kind].emplace(num_ranks, Lines{LineTable(profile, prefix + ".wait", "b", "s"),
                                                  LineTable(profile, prefix + ".core", "b", "s")});
    }
  }
  const double to_host = profile.Value("copy.to_host.bandwidth", "B/s");
  const double to_device = profile.Value("copy.to_device.bandwidth", "B/s");
  seconds_per_staged_byte_ = 1 / to_host + 1 / to_device;
  seconds_per_copied_byte_ = 1 / to_host;
}

GlooModel::Parts GlooModel::PartsOf(CollectiveKind kind, double size, int num_ranks) const {
  if (kind == CollectiveKind::kRingExchange) return {p2p_.wait.At(size), p2p_.core.At(size)};
  const auto known = collectives_.find(KindOf(kind));
  if (known == collectives_.end()) {
    throw base::Error(
        fmt::format("error: profile {} has no gloo.{}.*\n  hint: measure it with `isthmus "
                    "calibrate`",
                    profile_name_, KindOf(kind)));
  }
  const std::map<int, Lines>& by_ranks = known->second;
  const auto at = [size](const Lines& lines, double factor) {
    return Parts{lines.wait.At(size) * factor, lines.core.At(size) * factor};
  };
  const auto above = by_ranks.lower_bound(num_ranks);
  if (above == by_ranks.end()) {
    const auto& [most, lines] = *by_ranks.rbegin();
    return at(lines, static_cast<double>(num_ranks - 1) / (most - 1));
  }
  if (above->first == num_ranks || above == by_ranks.begin()) return at(above->second, 1);
  const auto below = std::prev(above);
  const double weight =
      static_cast<double>(num_ranks - below->first) / (above->first - below->first);
  const Parts low = at(below->second, 1 - weight);
  const Parts high = at(above->second, weight);
  return {low.wait + high.wait, low.core + high.core};
}

double GlooModel::Staged(double size) const {
  return staging_ == Staging::kNone ? 0 : 2 * copy_latency_ + size * seconds_per_staged_byte_;
}

base::Seconds GlooModel::Time(CollectiveKind kind, base::Bytes size,
                              const topology::GroupLocality& group) const {
  if (group.num_ranks == 1 || size == base::Bytes(0)) return base::Seconds(0);
  const auto bytes = static_cast<double>(size.value());
  const Parts parts = PartsOf(kind, bytes, group.num_ranks);
  return base::Seconds(parts.wait + parts.core + Staged(bytes));
}

base::Seconds GlooModel::CoreTime(CollectiveKind kind, base::Bytes size,
                                  const topology::GroupLocality& group) const {
  const bool is_empty = group.num_ranks == 1 || size == base::Bytes(0);
  if (is_empty || staging_ == Staging::kThroughHost) return base::Seconds(0);
  return base::Seconds(PartsOf(kind, static_cast<double>(size.value()), group.num_ranks).core);
}

base::Seconds GlooModel::P2P(base::Bytes size, const topology::Route& /*route*/) const {
  if (size == base::Bytes(0)) return base::Seconds(0);
  const auto bytes = static_cast<double>(size.value());
  return base::Seconds(p2p_.wait.At(bytes) + p2p_.core.At(bytes) + Staged(bytes));
}

base::Seconds GlooModel::CoreTimeOfP2P(base::Bytes size) const {
  if (size == base::Bytes(0) || staging_ == Staging::kThroughHost) return base::Seconds(0);
  return base::Seconds(p2p_.core.At(static_cast<double>(size.value())));
}

base::Seconds GlooModel::Copy(base::Bytes size, plan::CopyDirection /*direction*/,
                              const topology::Route& /*route*/) const {
  if (size == base::Bytes(0)) return base::Seconds(0);
  return base::Seconds(copy_latency_ +
                       static_cast<double>(size.value()) * seconds_per_copied_byte_);
}

}  // namespace isthmus::sim
