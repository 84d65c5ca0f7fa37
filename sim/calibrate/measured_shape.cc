#include "sim/calibrate/measured_shape.h"

#include <array>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "sim/cost/measured_kernel_model.h"
#include "topology/locality.h"
#include "topology/route.h"

namespace isthmus::sim {
namespace {

using plan::CollectiveKind;
using plan::MemoryClass;
using traces::MeasuredRow;

std::vector<std::string_view> Words(std::string_view text, char mark) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t end = text.find(mark);
    words.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return words;
    text.remove_prefix(end + 1);
  }
}

// "m64_n256" with the axes "mn": {64, 256}.
std::vector<std::int64_t> Coordinates(const MeasuredRow& row, std::string_view axes) {
  std::vector<std::int64_t> coordinates;
  const std::vector<std::string_view> words = Words(row.point, '_');
  bool is_good = words.size() == axes.size();
  for (std::size_t axis = 0; is_good && axis < axes.size(); ++axis) {
    const std::string_view word = words[axis];
    is_good = !word.empty() && word.front() == axes[axis];
    if (!is_good) break;
    const auto [end, error] =
        std::from_chars(word.data() + 1, word.data() + word.size(), coordinates.emplace_back());
    is_good = error == std::errc() && end == word.data() + word.size() && coordinates.back() > 0;
  }
  if (is_good) return coordinates;
  throw base::Error(
      fmt::format("the measurement {} is of \"{}\", no point of {}", row.table, row.point, axes));
}

plan::DType TypeOf(std::string_view word) {
  if (word == "fp64") return plan::DType::kFp64;
  return word == "bf16" ? plan::DType::kBf16 : plan::DType::kFp32;
}

MemoryClass ClassOf(std::string_view word) {
  for (std::size_t index = 0; index < plan::kNumMemoryClasses; ++index) {
    const auto memory_class = static_cast<MemoryClass>(index);
    if (word == plan::ToText(memory_class)) return memory_class;
  }
  return MemoryClass::kElementwise;
}

constexpr std::array kCollectives = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                     CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
                                     CollectiveKind::kBroadcast};

}  // namespace

std::optional<MeasuredShape> ParseKernel(const MeasuredRow& row) {
  const std::vector<std::string_view> words = Words(row.table, '.');
  if (words[0] == "gemm" && words.size() == 2) {
    const auto at = Coordinates(row, "mnk");
    const plan::Gemm gemm{.m = at[0], .n = at[1], .k = at[2], .dtype = TypeOf(words[1])};
    return MeasuredShape{{gemm}, plan::FlopsOf(gemm).value(), "FLOP/s"};
  }
  if (words[0] == "attention" && words.size() == 4) {
    const auto at = Coordinates(row, "sd");
    const plan::Attention attention{.num_sequences = 1,
                                    .query_len = at[0],
                                    .kv_len = at[0],
                                    .heads = kAttentionHeads,
                                    .kv_heads = kAttentionHeads,
                                    .head_dim = at[1],
                                    .causal = words[3] == "causal",
                                    .backward = words[2] == "backward",
                                    .dtype = TypeOf(words[1])};
    return MeasuredShape{
        {attention}, plan::FlopsOf(attention).value(), "FLOP/s", kAttentionLaunches};
  }
  if (words[0] == "memory" && words.size() == 2) {
    const auto at = Coordinates(row, "b");
    const plan::MemoryBound moved{.memory_class = ClassOf(words[1]), .bytes = base::Bytes(at[0])};
    return MeasuredShape{{moved}, static_cast<double>(at[0]), "B/s"};
  }
  return std::nullopt;
}

std::optional<int> RanksOf(const std::string& table) {
  if (table == "gloo.p2p") return 2;
  const std::size_t mark = table.rfind(".ranks_");
  const bool is_message = table.starts_with("gloo.") || table.starts_with("staged.");
  if (!is_message || mark == std::string::npos) return std::nullopt;
  const std::string_view word = std::string_view(table).substr(mark + 7);
  int num_ranks = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), num_ranks);
  if (error != std::errc() || end != word.data() + word.size() || num_ranks < 2)
    throw base::Error(fmt::format("the measurement {} is of no number of ranks", table));
  return num_ranks;
}

std::int64_t SizeOf(const MeasuredRow& row) { return Coordinates(row, "b")[0]; }

std::pair<double, double> PriceCommunication(const GlooModel& gloo, const MeasuredRow& row,
                                             int num_ranks) {
  const base::Bytes size(SizeOf(row));
  topology::GroupLocality group;
  group.num_ranks = num_ranks;
  for (const CollectiveKind kind : kCollectives) {
    if (row.table.find(fmt::format(".{}.", plan::ToText(kind))) == std::string::npos) continue;
    return {gloo.Time(kind, size, group).value(), gloo.CoreTime(kind, size, group).value()};
  }
  return {gloo.P2P(size, topology::Route{}).value(), gloo.CoreTimeOfP2P(size).value()};
}

}  // namespace isthmus::sim
