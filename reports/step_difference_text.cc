#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "base/sim_time.h"
#include "base/text.h"
#include "base/units.h"
#include "reports/internal/links_text.h"
#include "reports/internal/other_jobs.h"
#include "reports/internal/page.h"
#include "reports/internal/words.h"
#include "reports/table.h"
#include "reports/text.h"

namespace isthmus::reports {
namespace {

std::string InSeconds(std::int64_t time_ps) {
  return base::FormatSeconds(base::ToSeconds(base::Picoseconds(std::abs(time_ps))));
}

std::string Signed(std::int64_t time_ps) {
  const char* const sign = time_ps < 0 ? "-" : time_ps > 0 ? "+" : "";
  return sign + InSeconds(time_ps);
}

std::string PerCent(double after, double before) {
  if (!(before > 0)) return "";
  constexpr double kPercent = 100;
  return fmt::format("{:+.1f} %", (after / before - 1) * kPercent);
}

class DifferenceReport : private Page {
 public:
  DifferenceReport(const StepDifference& difference, const TextOptions& options)
      : Page(options), options_(options), difference_(difference) {}

  std::string Render() {
    Heading();
    Step();
    Terms();
    OtherJobs();
    Notes();
    return std::move(text_);
  }

 private:
  void Heading() {
    const Figures& base = difference_.base;
    Line(paint_(Hue::kStrong, base.scenario_name) + "  " + PlacementInWords(base.placement) + ", " +
         base::Counted(base.num_ranks, "rank", "ranks") + ", network " + difference_.network +
         ": what if");
    for (const ChangedValue& change : difference_.changes) {
      const std::string from = change.before.empty() ? "" : change.before + " → ";
      Line("  " + change.key + ": " + from + paint_(Hue::kStrong, change.after));
    }
  }

  void Step() {
    Line("");
    const Figures& base = difference_.base;
    const Figures& changed = difference_.changed;
    Table rows({{""},
                {"base", Align::kRight},
                {"changed", Align::kRight},
                {"difference", Align::kRight},
                {"", Align::kRight}});
    const auto step_ps = [](const Figures& figures) {
      return base::ToPicoseconds(base::Seconds(figures.step_time_s)).value();
    };
    rows.AddRow({"step time", InSeconds(step_ps(base)), InSeconds(step_ps(changed)),
                 paint_(Hue::kStrong, Signed(step_ps(changed) - step_ps(base))),
                 PerCent(changed.step_time_s, base.step_time_s)});
    rows.AddRow({"tokens/s", RateInWords(base.tokens_per_s), RateInWords(changed.tokens_per_s), "",
                 PerCent(changed.tokens_per_s, base.tokens_per_s)});
    if (base.mfu > 0) {
      rows.AddRow({"MFU", base::FormatFraction(base.mfu), base::FormatFraction(changed.mfu), "",
                   PerCent(changed.mfu, base.mfu)});
    }
    if (!base.memory.empty() && !changed.memory.empty()) AddMemory(rows);
    text_ += rows.RenderText();
  }

  void AddMemory(Table& rows) const {
    const MemoryFigure& base = difference_.base.memory.front();
    const MemoryFigure& changed = difference_.changed.memory.front();
    const auto bytes = [](const MemoryFigure& figure) {
      return base::FormatBytes(base::Bytes(figure.peak_bytes));
    };
    std::string verdict = VerdictInWords(changed.verdict);
    if (base.verdict != changed.verdict) {
      verdict = VerdictInWords(base.verdict) + " → " + verdict;
    }
    rows.AddRow(
        {"fullest GPU", bytes(base), bytes(changed),
         paint_(changed.fits() ? Hue::kPlain : Hue::kBad, verdict),
         PerCent(static_cast<double>(changed.peak_bytes), static_cast<double>(base.peak_bytes))});
  }

  void Terms() {
    if (difference_.num_named == 0) {
      Line("");
      Line("Nothing on the critical path takes another time.");
      return;
    }
    Title("Where the difference comes from", "along the critical paths of both steps");
    Table rows({{"op"},
                {"spent on"},
                {"link"},
                {"rank", Align::kRight},
                {"pieces", Align::kRight},
                {"base", Align::kRight},
                {"changed", Align::kRight},
                {"difference", Align::kRight},
                {"of all", Align::kRight}});
    for (std::size_t index = 0; index < difference_.num_named; ++index) {
      const DifferenceTerm& term = difference_.terms[index];
      AddTerm(rows, term.op, SpentOn(term), term.link.empty() ? term.link_kind : term.link,
              fmt::format("{}", term.rank), term);
    }
    rows.AddRule();
    const std::size_t others = difference_.terms.size() - difference_.num_named;
    if (others > 0) {
      AddTerm(rows, "other",
              base::Counted(static_cast<std::int64_t>(others), "small term", "small terms"), "", "",
              difference_.Other());
    }
    DifferenceTerm sum;
    sum.base_ps = difference_.base.window_ps;
    sum.changed_ps = difference_.changed.window_ps;
    AddTerm(rows, "sum", "", "", "", sum);
    text_ += rows.RenderText();
  }

  static std::string SpentOn(const DifferenceTerm& term) {
    return term.kind == "slowdown" ? "slowed by a sync" : KindInWords(term.category);
  }

  void AddTerm(Table& rows, const std::string& name, const std::string& spent_on,
               const std::string& link, const std::string& rank, const DifferenceTerm& term) const {
    std::string pieces;
    if (term.base_pieces == term.changed_pieces) {
      pieces = term.base_pieces > 0 ? base::FormatCount(term.base_pieces) : "";
    } else {
      pieces = base::FormatCount(term.base_pieces) + " → " + base::FormatCount(term.changed_pieces);
    }
    std::string share;
    if (difference_.difference_ps() != 0) {
      share = base::FormatFraction(static_cast<double>(term.difference_ps()) /
                                   static_cast<double>(difference_.difference_ps()));
    }
    rows.AddRow({name, spent_on, link, rank, pieces, InSeconds(term.base_ps),
                 InSeconds(term.changed_ps), Signed(term.difference_ps()), share});
  }

  void OtherJobs() {
    const Figures& changed = difference_.changed;
    if (changed.other_jobs.empty()) return;
    if (changed.links) text_ += RenderLossesToOthers(*changed.links, options_);
    text_ += RenderOtherJobs(changed.other_jobs, options_);
  }

  void Notes() {
    std::vector<std::string> notes = difference_.notes;
    if (difference_.changed.num_steps > 1) {
      notes.push_back(
          fmt::format("terms are sums over {} steps", difference_.changed.num_steps - 1));
    }
    if (notes.empty()) return;
    Line("");
    Bullets(notes, notes.size());
  }

  const TextOptions& options_;
  const StepDifference& difference_;
};

}  // namespace

std::string RenderText(const StepDifference& difference, const TextOptions& options) {
  return DifferenceReport(difference, options).Render();
}

}  // namespace isthmus::reports
