#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "reports/internal/page.h"
#include "reports/internal/words.h"
#include "reports/table.h"
#include "reports/text.h"

namespace isthmus::reports {
namespace {

constexpr std::size_t kShownRows = 8;
constexpr std::size_t kShownProblems = 5;
constexpr double kPicosecond = 1e-12;
constexpr double kGood = 0.05;
constexpr double kFair = 0.15;

std::string InSeconds(double seconds) {
  // Differences may be negative.
  const std::string text = base::FormatSeconds(base::Seconds{std::abs(seconds)});
  return seconds < 0 ? "-" + text : text;
}
std::string InSeconds(std::int64_t time_ps) {
  return InSeconds(static_cast<double>(time_ps) * kPicosecond);
}

class ComparisonReport : private Page {
 public:
  ComparisonReport(const Comparison& comparison, const TextOptions& options)
      : Page(options), comparison_(comparison) {}

  std::string Render() {
    Heading();
    Step();
    PathTerms();
    Uses();
    RowsBy("By kind of op", comparison_.kinds);
    if (verbose_) RowsBy("By category", comparison_.categories);
    if (verbose_) RowsBy("By module", comparison_.modules);
    if (verbose_) RowsBy("By op", comparison_.ops);
    WorstOps();
    Ranks();
    Clocks();
    Lists();
    return std::move(text_);
  }

 private:
  std::string ErrorText(const TwinTime& time) const {
    const std::optional<double> error = time.error();
    if (!error) return "";
    constexpr double kPercent = 100;
    const std::string text = fmt::format("{:+.1f} %", *error * kPercent);
    const double size = std::abs(*error);
    return paint_(size <= kGood ? Hue::kGood : size <= kFair ? Hue::kWarning : Hue::kBad, text);
  }

  void Heading() {
    const Figures& measured = comparison_.measured;
    std::string line = paint_(Hue::kStrong, comparison_.predicted.scenario_name) + "  " +
                       PlacementInWords(comparison_.predicted.placement) + ", " +
                       base::Counted(comparison_.predicted.num_ranks, "rank", "ranks") +
                       ", predicted against measured";
    Line(line);
    Line("  " + paint_(Hue::kFaint, "predicted for " + comparison_.predicted.machine +
                                        " with profile " + comparison_.predicted.profile_name));
    line = "measured on " + measured.machine;
    for (const auto& [name, version] : comparison_.software) {
      const std::string text = fmt::format("{} {}", name, version);
      if (measured.machine.find(text) == std::string::npos) line += ", " + text;
    }
    Line("  " + paint_(Hue::kFaint, line));
  }

  void Step() {
    Line("");
    Table rows({{""}, {"", Align::kRight}, {""}});
    rows.AddRow(
        {"predicted step", paint_(Hue::kStrong, InSeconds(comparison_.step_time.predicted_s)), ""});
    std::string remark = "the recorded step";
    if (const auto& steps = comparison_.steps) {
      remark = fmt::format("median of {}, {} to {}, spread {}",
                           base::Counted(steps->num_steps, "step", "steps"),
                           InSeconds(steps->shortest_s), InSeconds(steps->longest_s),
                           base::FormatFraction(steps->spread));
    }
    rows.AddRow({"measured step", paint_(Hue::kStrong, InSeconds(comparison_.step_time.measured_s)),
                 remark});
    rows.AddRow({"error", ErrorText(comparison_.step_time),
                 InSeconds(comparison_.step_time.difference_s())});
    text_ += rows.RenderText({.indent = 2, .gap = 2, .titles = false});
  }

  void PathTerms() {
    Title("Where the error comes from", "along the critical path of the recorded step");
    Table rows({{""},
                {"predicted", Align::kRight},
                {"measured", Align::kRight},
                {"difference", Align::kRight}});
    const auto add = [&](const char* name, const ErrorTerm& term) {
      rows.AddRow({name, InSeconds(term.predicted_ps), InSeconds(term.measured_ps),
                   InSeconds(term.difference_ps())});
    };
    const PathError& path = comparison_.path;
    std::vector<std::pair<const char*, ErrorTerm>> terms = {
        {"compute", path.compute},
        {"collectives, messages", path.collective},
        {"wait", path.wait},
        {"host", path.host}};
    std::stable_sort(terms.begin(), terms.end(), [](const auto& a, const auto& b) {
      return std::abs(a.second.difference_ps()) > std::abs(b.second.difference_ps());
    });
    for (const auto& [name, term] : terms) add(name, term);
    rows.AddRule();
    add("sum", {comparison_.predicted_window_ps, comparison_.measured_window_ps});
    text_ += rows.RenderText();
  }

  void Uses() {
    Title("Where the time goes", "mean over ranks");
    Table rows({{""}, {"predicted", Align::kRight}, {"measured", Align::kRight}});
    for (std::size_t use = 0; use < comparison_.predicted.shares.size(); ++use) {
      rows.AddRow({KindInWords(ToText(static_cast<TimeUse>(use))),
                   base::FormatFraction(comparison_.predicted.shares[use]),
                   base::FormatFraction(comparison_.measured.shares[use])});
    }
    text_ += rows.RenderText();
  }

  void RowsBy(const char* title, const std::vector<ComparedRow>& compared) {
    if (compared.empty()) return;
    Title(title, "sum of durations per step, mean over ranks, largest difference first");
    Table rows({{""},
                {"events", Align::kRight},
                {"predicted", Align::kRight},
                {"measured", Align::kRight},
                {"error", Align::kRight},
                {"median |error|", Align::kRight}});
    const std::size_t shown = Shown(compared.size(), kShownRows);
    for (std::size_t index = 0; index < shown; ++index) {
      const ComparedRow& row = compared[index];
      rows.AddRow({row.key, base::FormatCount(row.num_events), InSeconds(row.time.predicted_s),
                   InSeconds(row.time.measured_s), ErrorText(row.time),
                   base::FormatFraction(row.median_abs_error)});
    }
    text_ += rows.RenderText();
    More(compared.size() - shown);
  }

  void WorstOps() {
    if (comparison_.worst_ops.empty()) return;
    Title("Worst ops", "the rank that differs most; * on the critical path");
    Table rows({{"op"},
                {"rank", Align::kRight},
                {"predicted", Align::kRight},
                {"measured", Align::kRight},
                {"error", Align::kRight}});
    for (const ComparedOp& op : comparison_.worst_ops) {
      const std::string transfer =
          op.transfer > 0 ? fmt::format(", transfer {}", op.transfer - 1) : std::string();
      rows.AddRow(
          {fmt::format("{} {}{}{}", op.op, op.name, transfer, op.on_critical_path ? " *" : ""),
           base::FormatCount(op.rank), InSeconds(op.time.predicted_s),
           InSeconds(op.time.measured_s), ErrorText(op.time)});
    }
    text_ += rows.RenderText();
  }

  void Ranks() {
    Title("By rank", "predicted / measured per step");
    constexpr auto kCompute = static_cast<std::size_t>(TimeUse::kCompute);
    constexpr auto kCopy = static_cast<std::size_t>(TimeUse::kCopy);
    constexpr auto kBubble = static_cast<std::size_t>(TimeUse::kBubble);
    constexpr auto kExposed = static_cast<std::size_t>(TimeUse::kExposedComm);
    constexpr auto kStraggler = static_cast<std::size_t>(TimeUse::kStraggler);
    constexpr auto kHost = static_cast<std::size_t>(TimeUse::kHost);
    Table rows({{"rank", Align::kRight},
                {"compute", Align::kRight},
                {"copy, communication", Align::kRight},
                {"bubble, straggler", Align::kRight},
                {"host", Align::kRight}});
    const std::size_t count = comparison_.ranks.size();
    const std::size_t shown = Shown(count, kShownRows);
    for (std::size_t index = 0; index < shown; ++index) {
      const ComparedRank& rank = comparison_.ranks[index];
      const auto both = [&](std::size_t one, std::size_t other) {
        return TwinTime{rank.uses[one].predicted_s + rank.uses[other].predicted_s,
                        rank.uses[one].measured_s + rank.uses[other].measured_s};
      };
      const auto cell = [](const TwinTime& time) {
        return InSeconds(time.predicted_s) + " / " + InSeconds(time.measured_s);
      };
      rows.AddRow({base::FormatCount(rank.rank), cell(rank.uses[kCompute]),
                   cell(both(kCopy, kExposed)), cell(both(kBubble, kStraggler)),
                   cell(rank.uses[kHost])});
    }
    text_ += rows.RenderText();
    More(count - shown);
  }

  void Clocks() {
    const traces::ClockSkew& skew = comparison_.skew;
    const double residual = skew.residual_ps * kPicosecond;
    Title("Clocks");
    if (!skew.has_offsets) {
      Line(fmt::format("  one clock explains the trace: ends of {} differ by {} in the median",
                       base::Counted(skew.num_samples, "pair", "pairs"), InSeconds(residual)));
      return;
    }
    std::string line = "  offsets taken out:";
    const std::size_t shown = Shown(skew.clocks.size(), kShownRows);
    for (std::size_t rank = 0; rank < shown; ++rank) {
      line +=
          fmt::format(" rank {} {}{}", rank, InSeconds(skew.clocks[rank].offset_ps * kPicosecond),
                      skew.has_drift ? fmt::format(" {:+.1f} ppm", skew.clocks[rank].drift * 1e6)
                                     : std::string());
      line += rank + 1 < shown ? "," : "";
    }
    Line(line);
    Line(fmt::format("  ends of {} then differ by {} in the median",
                     base::Counted(skew.num_samples, "pair", "pairs"), InSeconds(residual)));
  }

  void Lists() {
    std::vector<std::string> lone;
    for (const LoneEvent& event : comparison_.lone) {
      lone.push_back(fmt::format(
          "rank {}: op {} '{}'{} only {}", event.rank, event.op, event.name,
          event.transfer > 0 ? fmt::format(", transfer {},", event.transfer - 1) : std::string(),
          event.predicted ? "predicted" : "measured"));
    }
    List(base::Counted(static_cast<std::int64_t>(lone.size()), "event without a twin",
                       "events without a twin"),
         lone, Hue::kWarning);
    std::vector<std::string> problems;
    for (const traces::MeasuredProblem& problem : comparison_.problems) {
      problems.push_back(problem.text);
    }
    List(base::Counted(static_cast<std::int64_t>(problems.size()), "problem of the measured trace",
                       "problems of the measured trace"),
         problems, Hue::kBad);
    List("Notes", comparison_.notes, Hue::kPlain);
    Line("");
    Line(paint_(Hue::kFaint, fmt::format("{} events joined, program {}",
                                         base::FormatCount(comparison_.num_joined),
                                         comparison_.predicted.program_hash)));
  }

  void List(const std::string& title, const std::vector<std::string>& entries, Hue hue) {
    if (entries.empty()) return;
    Line("");
    Line(paint_(hue == Hue::kPlain ? Hue::kStrong : hue, title));
    Bullets(entries, kShownProblems);
  }

  const Comparison& comparison_;
};

}  // namespace

std::string RenderText(const Comparison& comparison, const TextOptions& options) {
  return ComparisonReport(comparison, options).Render();
}

}  // namespace isthmus::reports
