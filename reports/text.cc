#include "reports/text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "reports/internal/links_text.h"
#include "reports/internal/other_jobs.h"
#include "reports/internal/page.h"
#include "reports/internal/words.h"
#include "reports/table.h"

namespace isthmus::reports {
namespace {

constexpr std::size_t kMaxBar = 40;
constexpr std::size_t kMemoryBar = 20;
constexpr std::size_t kShownPathShares = 6;
constexpr std::size_t kShownAssumptions = 3;
constexpr std::size_t kShownCategories = 3;
constexpr Table::TextStyle kRowsOnly{.indent = 2, .gap = 2, .titles = false};

std::string InSeconds(double seconds) { return base::FormatSeconds(base::Seconds{seconds}); }
// A core of a host has a thousandth of a GPU.
std::string Speed(double tflops, int digits) {
  return tflops < 1.0 ? fmt::format("{:.1f} GFLOPS", 1e3 * tflops)
                      : fmt::format("{:.{}f} TFLOPS", tflops, digits);
}
std::string InBytes(std::int64_t bytes) { return base::FormatBytes(base::Bytes{bytes}); }

// Writes the sections one after the other into one text.
class TextReport : private Page {
 public:
  TextReport(const Figures& figures, const TextOptions& options)
      : Page(options), figures_(figures), options_(options) {}

  std::string Render() {
    Heading();
    if (figures_.has_times) {
      Headline();
      TimeUses();
      TimesByRole();
      Exposed();
    } else {
      Line("");
      Line("  no step time: nobody has measured this machine's kernels; memory needs none");
    }
    Boundaries();
    IslandsOfEncoders();
    Memory();
    Path();
    LongestSegments();
    text_ += RenderOtherJobs(figures_.other_jobs, options_);
    if (figures_.links) text_ += RenderLinks(*figures_.links, options_);
    Assumptions();
    Footer();
    return std::move(text_);
  }

 private:
  // Characters left for a bar on a line that already has `used`.
  std::size_t BarWidth(std::size_t used) const {
    constexpr std::size_t kMinBar = 10;
    return std::clamp(width_ > used ? width_ - used : 0, kMinBar, kMaxBar);
  }
  std::string AccentBar(double fraction) const {
    constexpr std::size_t kUsed = 50;
    return paint_(Hue::kAccent, Bar(fraction, BarWidth(kUsed)));
  }

  void Heading() {
    std::string line = paint_(Hue::kStrong, figures_.scenario_name) + "  " +
                       PlacementInWords(figures_.placement) + ", " +
                       (is_measured() ? base::Counted(figures_.num_ranks, "rank", "ranks")
                                      : base::Counted(figures_.num_ranks, "GPU", "GPUs"));
    if (figures_.num_microbatches > 0) {
      line += ", " + base::Counted(figures_.num_microbatches, "microbatch", "microbatches");
    }
    if (is_measured()) line += ", measured on " + figures_.machine;
    Line(line);
    Table modules({{""}, {""}, {""}, {""}, {"", Align::kRight}});
    for (const traces::ModuleRecord& module : figures_.modules) {
      std::string parameters = ParametersInWords(module.parameters);
      if (!parameters.empty()) parameters += " parameters";
      modules.AddRow({module.name, module.kind, paint_(Hue::kAccent, module.layout),
                      RankRange(module.first_rank, module.num_ranks), std::move(parameters)});
    }
    text_ += modules.RenderText(kRowsOnly);
  }

  bool is_measured() const { return figures_.kind == traces::TraceKind::kMeasured; }

  // Nobody told a measured run what its device could do at most.
  std::string Utilization() const {
    if (figures_.peak_tflops_per_gpu <= 0) return {};
    return fmt::format("MFU {}, HFU {} of {}", base::FormatFraction(figures_.mfu),
                       base::FormatFraction(figures_.hfu), Speed(figures_.peak_tflops_per_gpu, 0));
  }

  void Headline() {
    Line("");
    Table rows({{""}, {"", Align::kRight}, {""}});
    std::string step = paint_(Hue::kStrong, InSeconds(figures_.step_time_s));
    std::string remark;
    if (figures_.band) {
      remark = fmt::format("between {} and {}", InSeconds(figures_.band->low_step_time_s),
                           InSeconds(figures_.band->high_step_time_s));
    } else if (figures_.num_steps > 1) {
      remark = fmt::format("mean period of {} steps after the first", figures_.num_steps - 1);
    }
    rows.AddRow({"step time", std::move(step), std::move(remark)});
    if (figures_.forward_backward_s > 0) {
      rows.AddRow({"forward, backward", InSeconds(figures_.forward_backward_s),
                   "first forward to last backward or gradient reduction"});
    }
    rows.AddRow({"speed",
                 paint_(Hue::kStrong, Speed(figures_.model_tflops_per_gpu, 1) +
                                          (is_measured() ? "/rank" : "/GPU")),
                 Utilization()});
    rows.AddRow({"throughput",
                 paint_(Hue::kStrong, RateInWords(figures_.tokens_per_s) + " tokens/s"),
                 RateInWords(figures_.samples_per_s) + " samples/s"});
    text_ += rows.RenderText(kRowsOnly);
    if (figures_.duty_relief) {
      Line(fmt::format("  at its power balance: clock {:.2f}, step {}",
                       figures_.duty_relief->clock_ratio,
                       InSeconds(figures_.duty_relief->step_time_s)));
    }
    if (!figures_.flop_convention.empty()) {
      Line("  " + paint_(Hue::kFaint, "FLOPs counted: " + figures_.flop_convention));
    }
  }

  void TimeUses() {
    Title("Where the time goes",
          "mean over " + base::Counted(figures_.num_ranks, "rank", "ranks") + ", per step");
    Table rows({{""}, {"", Align::kRight}, {"", Align::kRight}, {""}});
    for (std::size_t use = 0; use < figures_.shares.size(); ++use) {
      const double share = figures_.shares[use];
      rows.AddRow({KindInWords(ToText(static_cast<TimeUse>(use))), base::FormatFraction(share),
                   InSeconds(share * figures_.step_time_s), AccentBar(share)});
    }
    text_ += rows.RenderText(kRowsOnly);
  }

  void TimesByRole() {
    if (!verbose_ || figures_.roles.size() < 2) return;
    Title("By role");
    std::vector<Column> columns = {{"role"}, {"ranks", Align::kRight}};
    for (int use = 0; use < kNumTimeUses; ++use) {
      columns.push_back({KindInWords(ToText(static_cast<TimeUse>(use))), Align::kRight});
    }
    Table rows(std::move(columns));
    for (const RoleTime& role : figures_.roles) {
      std::vector<std::string> cells = {role.role, base::FormatCount(role.ranks)};
      for (const double share : role.shares) cells.push_back(base::FormatFraction(share));
      rows.AddRow(std::move(cells));
    }
    text_ += rows.RenderText();
  }

  void Exposed() {
    if (figures_.exposed.empty() || !(figures_.step_time_s > 0)) return;
    Title("Exposed communication", "mean over ranks, per step");
    Table rows({{""}, {"", Align::kRight}, {"", Align::kRight}, {""}});
    for (const ExposedComm& exposed : figures_.exposed) {
      const double share = exposed.seconds / figures_.step_time_s;
      rows.AddRow({KindInWords(exposed.kind), base::FormatFraction(share),
                   InSeconds(exposed.seconds), AccentBar(share)});
    }
    text_ += rows.RenderText(kRowsOnly);
  }

  void Boundaries() {
    if (figures_.boundaries.empty()) return;
    Title("Boundaries", "payload and exposed time per step");
    const auto known = [&](double seconds) {
      return figures_.has_times ? InSeconds(seconds) : std::string();
    };
    Table rows({{"edge"},
                {"kind"},
                {"forward", Align::kRight},
                {"backward", Align::kRight},
                {"exposed", Align::kRight},
                {"worst rank", Align::kRight}});
    for (const BoundaryFigure& boundary : figures_.boundaries) {
      rows.AddRow({boundary.from + " → " + boundary.to, boundary.kind,
                   InBytes(boundary.bytes_forward), InBytes(boundary.bytes_backward),
                   known(boundary.exposed_s), known(boundary.worst_exposed_s)});
    }
    text_ += rows.RenderText();
  }

  void IslandsOfEncoders() {
    if (figures_.islands.empty()) return;
    Title("Encoders on GPUs of their own", "against the LLM's busiest stage");
    Table rows({{"module"},
                {"ranks", Align::kRight},
                {"busy", Align::kRight},
                {"TFLOPS/GPU", Align::kRight},
                {"needed to keep up", Align::kRight}});
    for (const IslandFigure& island : figures_.islands) {
      rows.AddRow({island.module, base::FormatCount(island.ranks),
                   base::FormatFraction(island.utilisation),
                   fmt::format("{:.0f}", island.tflops_per_gpu),
                   fmt::format("{:.0f}", island.needed_tflops_per_gpu)});
    }
    text_ += rows.RenderText();
    for (const IslandFigure& island : figures_.islands) {
      if (!island.is_saturated()) continue;
      const std::string line = fmt::format(
          "{} is saturated: the LLM waits for it beyond {:.0f} TFLOPS/GPU; give it more GPUs",
          island.module, island.limit_tflops_per_gpu);
      Line("  " + paint_(Hue::kWarning, line));
    }
  }

  static Hue HueOf(const MemoryFigure& memory) {
    if (!memory.fits()) return Hue::kBad;
    return memory.verdict == "borderline" ? Hue::kWarning : Hue::kGood;
  }

  std::string MemoryBar(const MemoryFigure& memory) const {
    if (memory.capacity_bytes <= 0) return {};
    const double fraction =
        static_cast<double>(memory.peak_bytes) / static_cast<double>(memory.capacity_bytes);
    const std::string bar = Bar(fraction, kMemoryBar);
    std::string rest;
    for (std::size_t at = DisplayWidth(bar); at < kMemoryBar; ++at) rest += "░";
    return paint_(HueOf(memory), bar) + paint_(Hue::kFaint, rest);
  }

  std::string Largest(const MemoryFigure& memory) const {
    std::string text;
    std::size_t shown = 0;
    for (const auto& [name, bytes] : memory.categories) {
      if (!verbose_ && shown == kShownCategories) break;
      text += (shown++ == 0 ? "" : ", ") + KindInWords(name) + " " + InBytes(bytes);
    }
    return text;
  }

  void Memory() {
    if (figures_.memory.empty()) return;
    Title("Memory", "peak of each role's fullest rank, worst first");
    Table rows({{"role"},
                {"ranks", Align::kRight},
                {"allocated", Align::kRight},
                {"reserved", Align::kRight},
                {"device", Align::kRight},
                {"capacity", Align::kRight},
                {""},
                {"verdict"}});
    for (const MemoryFigure& memory : figures_.memory) {
      const auto known = [](std::int64_t bytes) { return bytes > 0 ? InBytes(bytes) : ""; };
      rows.AddRow({memory.role, base::FormatCount(memory.ranks), known(memory.allocated_bytes),
                   known(memory.reserved_bytes), InBytes(memory.peak_bytes),
                   InBytes(memory.capacity_bytes), MemoryBar(memory),
                   paint_(HueOf(memory), VerdictInWords(memory.verdict))});
    }
    text_ += rows.RenderText();
    for (std::size_t index = 0; index < figures_.memory.size(); ++index) {
      if (index == 0 || verbose_) AtThePeak(figures_.memory[index]);
    }
  }

  void AtThePeak(const MemoryFigure& memory) {
    if (!memory.fits()) {
      Line("  " + paint_(Hue::kBad, fmt::format("{} lacks {} on rank {}", memory.role,
                                                InBytes(memory.peak_bytes - memory.capacity_bytes),
                                                base::FormatCount(memory.fullest_rank))));
    }
    if (memory.categories.empty()) return;
    std::string line = memory.role + " at its peak";
    if (!memory.phase.empty()) line += ", the " + memory.phase;
    if (!memory.moment.empty()) line += " (" + memory.moment + ")";
    Line("  " + paint_(Hue::kFaint, line + ": ") + Largest(memory));
  }

  void Path() {
    if (figures_.critical_path.empty()) return;
    Title("Critical path", "what the step time consists of");
    Table rows({{""}, {""}, {"", Align::kRight}, {""}});
    double rest = 0;
    std::size_t shown = 0;
    for (const PathShare& share : figures_.critical_path) {
      if (!verbose_ && shown == kShownPathShares) {
        rest += share.share;
        continue;
      }
      ++shown;
      rows.AddRow({KindInWords(share.category), share.module, base::FormatFraction(share.share),
                   AccentBar(share.share)});
    }
    if (shown < figures_.critical_path.size()) {
      rows.AddRow({fmt::format("{} more", figures_.critical_path.size() - shown), "",
                   base::FormatFraction(rest), AccentBar(rest)});
    }
    text_ += rows.RenderText(kRowsOnly);
  }

  void LongestSegments() {
    if (!verbose_ || figures_.longest_segments.empty()) return;
    Title("Its longest pieces");
    Table rows({{"op"},
                {"category"},
                {"rank", Align::kRight},
                {"from", Align::kRight},
                {"length", Align::kRight}});
    constexpr double kPicosecondsPerSecond = 1e12;
    for (const PathSegment& piece : figures_.longest_segments) {
      const auto start = static_cast<double>(piece.start_ps) / kPicosecondsPerSecond;
      const auto length =
          static_cast<double>(piece.end_ps - piece.start_ps) / kPicosecondsPerSecond;
      rows.AddRow({piece.op, KindInWords(piece.category), base::FormatCount(piece.rank),
                   InSeconds(start), InSeconds(length)});
    }
    text_ += rows.RenderText();
  }

  void Assumptions() {
    if (figures_.assumptions.empty()) return;
    const std::size_t count = figures_.assumptions.size();
    Title(base::Counted(static_cast<std::int64_t>(count), "assumption", "assumptions"));
    Bullets(figures_.assumptions, kShownAssumptions);
  }

  void Footer() {
    Line("");
    std::string line = "scenario " + figures_.scenario_hash + ", program " + figures_.program_hash;
    Line(paint_(Hue::kFaint, line));
    line = "profile " + figures_.profile_name;
    if (!figures_.profile_hash.empty()) line += " " + figures_.profile_hash;
    line += fmt::format(", commit {}, seed {}", figures_.commit, figures_.seed);
    Line(paint_(Hue::kFaint, line));
    line = fmt::format("{} {} of {} ranks{}, {} ops",
                       figures_.kind == traces::TraceKind::kMeasured ? "recorded" : "simulated",
                       base::FormatCount(figures_.simulated_ranks),
                       base::FormatCount(figures_.num_ranks),
                       figures_.folded ? " (equal ranks folded)" : "",
                       base::FormatCount(static_cast<std::int64_t>(figures_.num_ops)));
    if (figures_.network) {
      line += fmt::format(
          ", {} of {} flows shared links",
          base::FormatCount(static_cast<std::int64_t>(figures_.network->num_shared_flows)),
          base::FormatCount(static_cast<std::int64_t>(figures_.network->num_flows)));
    }
    if (figures_.cost) {
      line += fmt::format(", took {} and {}", InSeconds(figures_.cost->wall_s),
                          InBytes(figures_.cost->peak_rss_bytes));
    }
    Line(paint_(Hue::kFaint, line));
  }

  const Figures& figures_;
  TextOptions options_;
};

}  // namespace

std::string RenderText(const Figures& figures, const TextOptions& options) {
  return TextReport(figures, options).Render();
}

}  // namespace isthmus::reports
