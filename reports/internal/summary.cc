#include "reports/internal/summary.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "reports/internal/exact_sum.h"

namespace isthmus::reports {
namespace {

constexpr double kPicosecondsPerSecond = 1e12;
constexpr double kFlopsPerTflop = 1e12;
constexpr std::size_t kNumLongestSegments = 10;

double Seconds(double picoseconds) { return picoseconds / kPicosecondsPerSecond; }

// The convention whose name `text` begins with, "model" if there is none.
std::string ConventionKey(const traces::Header& header) {
  std::string key = "model";
  std::size_t longest = 0;
  for (const auto& [name, flops] : header.step_flops) {
    if (name.size() > longest && header.flop_convention.compare(0, name.size(), name) == 0) {
      key = name;
      longest = name.size();
    }
  }
  return key;
}

double FlopsOf(const traces::Header& header, const std::string& convention) {
  const auto found = header.step_flops.find(convention);
  return found == header.step_flops.end() ? 0.0 : found->second;
}

std::string ModuleName(const Figures& figures, std::uint16_t module) {
  return module < figures.modules.size() ? figures.modules[module].name : std::string();
}

// Roles of one name (variants with other sizes) are one to the reader: by role, the first so
// called.
std::vector<std::size_t> FirstOfName(const std::vector<RoleFacts>& roles) {
  std::map<std::string, std::size_t> first;
  std::vector<std::size_t> numbers;
  for (const RoleFacts& role : roles) {
    numbers.push_back(first.try_emplace(role.name, numbers.size()).first->second);
  }
  return numbers;
}

std::string PathCategoryName(int category) {
  if (category == kPathStraggler) return "straggler";
  return traces::ToText(static_cast<traces::Category>(category));
}

void AverageBoundaries(const std::vector<ClassSplit>& splits, double rank_steps,
                       std::int64_t num_steps, Figures& figures) {
  for (std::size_t edge = 0; edge < figures.boundaries.size(); ++edge) {
    double sum = 0;
    std::int64_t worst = 0;
    for (const ClassSplit& split : splits) {
      sum += split.time.count * static_cast<double>(split.exposed_by_edge_ps[edge]);
      worst = std::max(worst, split.exposed_by_edge_ps[edge]);
    }
    figures.boundaries[edge].exposed_s = Seconds(sum / rank_steps);
    figures.boundaries[edge].worst_exposed_s =
        Seconds(static_cast<double>(worst) / static_cast<double>(num_steps));
  }
}

// The path's pieces summed by category and module, largest first.
void ShareOutPath(const RunRecord& record, const CriticalPath& path, Figures& figures) {
  const std::size_t num_modules = figures.modules.size() + 1;  // the last: named by nothing
  std::vector<std::int64_t> sums(num_modules * kNumPathCategories);
  for (const PathPiece& piece : path.pieces) {
    const std::size_t module = std::min<std::size_t>(record.op(piece.ref).module, num_modules - 1);
    sums[module * kNumPathCategories + static_cast<std::size_t>(piece.category)] +=
        piece.end - piece.begin;
    figures.critical_path_ps += piece.end - piece.begin;
  }
  for (std::size_t index = 0; index < sums.size(); ++index) {
    if (sums[index] == 0) continue;
    figures.critical_path.push_back(
        {PathCategoryName(static_cast<int>(index % kNumPathCategories)),
         ModuleName(figures, static_cast<std::uint16_t>(index / kNumPathCategories)),
         static_cast<double>(sums[index])});
  }
  std::stable_sort(figures.critical_path.begin(), figures.critical_path.end(),
                   [](const auto& left, const auto& right) { return left.share > right.share; });
  std::vector<double> shares;
  for (const PathShare& share : figures.critical_path) shares.push_back(share.share);
  MakeFractions(shares);
  for (std::size_t index = 0; index < shares.size(); ++index) {
    figures.critical_path[index].share = shares[index];
  }
}

const char* KindOf(const PathPiece& piece, OpClass kind) {
  if (piece.is_wait) return "wait";
  if (piece.is_slowdown) return "slowdown";
  switch (kind) {
    case OpClass::kCollective:
      return "collective";
    case OpClass::kP2P:
      return "p2p";
    case OpClass::kCopy:
      return "copy";
    default:
      return "compute";
  }
}

PathSegment SegmentOf(const RunRecord& record, const Window& window, const PathPiece& piece,
                      const Figures& figures) {
  const OpFacts& op = record.op(piece.ref);
  return {.category = PathCategoryName(piece.category),
          .module = ModuleName(figures, op.module),
          .op = record.name(op),
          .rank = record.rank_class(piece.ref.rank_class).representative,
          .microbatch = op.microbatch,
          .start_ps = piece.begin - window.begin,
          .end_ps = piece.end - window.begin,
          .kind = KindOf(piece, op.kind),
          .op_index = piece.ref.op,
          .transfer = piece.ref.transfer};
}

}  // namespace

void DescribeRun(const traces::Header& header, Figures& figures) {
  figures.kind = header.kind;
  figures.scenario_name = header.scenario_name;
  figures.scenario_hash = header.scenario_hash;
  figures.program_hash = header.program_hash;
  figures.profile_name = header.profile_name;
  figures.profile_hash = header.profile_hash;
  figures.commit = header.commit;
  figures.machine = header.machine;
  figures.seed = header.seed;
  figures.placement = header.placement;
  figures.num_ranks = header.num_ranks;
  figures.num_steps = header.num_steps;
  figures.num_microbatches = header.num_microbatches;
  figures.modules = header.modules;
  figures.flop_convention = header.flop_convention;
  figures.peak_tflops_per_gpu = header.peak_flops_per_gpu / kFlopsPerTflop;
  figures.assumptions = header.assumptions;
  for (const traces::BoundaryRecord& edge : header.boundaries) {
    figures.boundaries.push_back({.from = edge.from,
                                  .to = edge.to,
                                  .kind = edge.kind,
                                  .bytes_forward = edge.bytes_forward,
                                  .bytes_backward = edge.bytes_backward});
  }
}

void ComputeRates(const traces::Header& header, const Window& window, Figures& figures) {
  figures.window_ps = window.length();
  figures.step_time_s =
      Seconds(static_cast<double>(window.length()) / static_cast<double>(window.num_steps));
  const double step = figures.step_time_s;
  if (!(step > 0)) return;
  figures.tokens_per_s = static_cast<double>(header.tokens_per_step) / step;
  figures.samples_per_s = static_cast<double>(header.samples_per_step) / step;
  if (header.num_ranks <= 0) return;
  const double rank_seconds = step * header.num_ranks;
  const double model_rate = FlopsOf(header, ConventionKey(header)) / rank_seconds;
  figures.model_tflops_per_gpu = model_rate / kFlopsPerTflop;
  if (!(header.peak_flops_per_gpu > 0)) return;
  figures.mfu = model_rate / header.peak_flops_per_gpu;
  figures.hfu = FlopsOf(header, "hardware") / rank_seconds / header.peak_flops_per_gpu;
}

void AverageTime(const RunRecord& record, const Window& window,
                 const std::vector<ClassSplit>& splits, Figures& figures) {
  TimeShares all{};
  std::vector<TimeShares> by_role(record.roles().size());
  std::vector<std::int32_t> ranks_of_role(record.roles().size());
  const std::vector<std::size_t> shown_role = FirstOfName(record.roles());
  std::array<double, traces::kNumCategories> exposed{};
  double ranks = 0;
  for (const ClassSplit& split : splits) {
    const double count = split.time.count;
    ranks += count;
    const std::size_t role = shown_role[split.time.role];
    ranks_of_role[role] += split.time.count;
    for (std::size_t use = 0; use < all.size(); ++use) {
      const double weight = count * static_cast<double>(split.time.use_ps[use]);
      all[use] += weight;
      by_role[role][use] += weight;
    }
    for (std::size_t kind = 0; kind < exposed.size(); ++kind) {
      exposed[kind] += count * static_cast<double>(split.time.exposed_ps[kind]);
    }
    figures.classes.push_back(split.time);
  }
  MakeFractions(all);
  figures.shares = all;
  for (std::size_t role = 0; role < by_role.size(); ++role) {
    if (ranks_of_role[role] == 0) continue;
    MakeFractions(by_role[role]);
    figures.roles.push_back({record.roles()[role].name, ranks_of_role[role], by_role[role]});
  }
  if (!(ranks > 0)) return;
  const double rank_steps = ranks * static_cast<double>(window.num_steps);
  for (std::size_t kind = 0; kind < exposed.size(); ++kind) {
    if (exposed[kind] == 0) continue;
    figures.exposed.push_back(
        {traces::ToText(static_cast<traces::Category>(kind)), Seconds(exposed[kind] / rank_steps)});
  }
  std::stable_sort(
      figures.exposed.begin(), figures.exposed.end(),
      [](const auto& left, const auto& right) { return left.seconds > right.seconds; });
  AverageBoundaries(splits, rank_steps, window.num_steps, figures);
}

void SummarizePath(const RunRecord& record, const Window& window, const CriticalPath& path,
                   Figures& figures) {
  ShareOutPath(record, path, figures);
  std::vector<PathPiece> longest = path.pieces;
  std::sort(longest.begin(), longest.end(), [](const PathPiece& left, const PathPiece& right) {
    const std::int64_t left_length = left.end - left.begin;
    const std::int64_t right_length = right.end - right.begin;
    return left_length != right_length ? left_length > right_length : left.begin < right.begin;
  });
  longest.resize(std::min(longest.size(), kNumLongestSegments));
  for (const PathPiece& piece : longest) {
    figures.longest_segments.push_back(SegmentOf(record, window, piece, figures));
  }
}

void ListPath(const RunRecord& record, const Window& window, const CriticalPath& path,
              Figures& figures) {
  figures.path.reserve(path.pieces.size());
  for (auto piece = path.pieces.rbegin(); piece != path.pieces.rend(); ++piece) {
    figures.path.push_back(SegmentOf(record, window, *piece, figures));
  }
}

namespace {

std::int64_t DeviceBytes(const traces::MemoryPeak& peak) {
  return std::max(peak.device_bytes, peak.peak_bytes);
}

// How full a device is; without a known capacity, by bytes.
double Fullness(std::int64_t bytes, std::int64_t capacity) {
  return capacity > 0 ? static_cast<double>(bytes) / static_cast<double>(capacity)
                      : static_cast<double>(bytes);
}

void TakeFullest(const RunRecord& record, const traces::MemoryPeak& peak, MemoryFigure& figure) {
  figure.fullest_rank = record.rank_class(peak.rank_class).representative;
  figure.peak_bytes = DeviceBytes(peak);
  figure.allocated_bytes = peak.peak_bytes;
  figure.reserved_bytes = peak.reserved_bytes;
  figure.capacity_bytes = peak.capacity_bytes;
  figure.verdict = peak.verdict;
  if (figure.verdict.empty()) {
    const bool fits = peak.capacity_bytes <= 0 || DeviceBytes(peak) <= peak.capacity_bytes;
    figure.verdict = fits ? "fits" : "does_not_fit";
  }
  figure.moment = peak.moment;
  figure.phase = peak.phase;
  figure.categories.assign(peak.categories.begin(), peak.categories.end());
  std::stable_sort(figure.categories.begin(), figure.categories.end(),
                   [](const auto& left, const auto& right) { return left.second > right.second; });
}

}  // namespace

void SummarizeMemory(const RunRecord& record, const traces::Trailer& trailer, Figures& figures) {
  std::vector<MemoryFigure> by_role(record.roles().size());
  const std::vector<std::size_t> shown_role = FirstOfName(record.roles());
  for (const traces::MemoryPeak& peak : trailer.memory) {
    if (peak.rank_class >= record.num_classes()) continue;
    const traces::RankClass& ranks = record.rank_class(peak.rank_class);
    MemoryFigure& figure = by_role[shown_role[ranks.role]];
    const std::int64_t bytes = DeviceBytes(peak);
    const bool first = figure.ranks == 0;
    figure.ranks += ranks.count;
    figure.lowest_peak_bytes = first ? bytes : std::min(figure.lowest_peak_bytes, bytes);
    if (first ||
        Fullness(bytes, peak.capacity_bytes) > Fullness(figure.peak_bytes, figure.capacity_bytes)) {
      TakeFullest(record, peak, figure);
    }
  }
  for (std::size_t role = 0; role < by_role.size(); ++role) {
    if (by_role[role].ranks == 0) continue;
    by_role[role].role = record.roles()[role].name;
    figures.memory.push_back(std::move(by_role[role]));
  }
  std::stable_sort(figures.memory.begin(), figures.memory.end(),
                   [](const MemoryFigure& left, const MemoryFigure& right) {
                     if (left.fits() != right.fits()) return !left.fits();
                     return Fullness(left.peak_bytes, left.capacity_bytes) >
                            Fullness(right.peak_bytes, right.capacity_bytes);
                   });
}

}  // namespace isthmus::reports
