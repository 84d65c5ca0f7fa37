#include "reports/internal/links_text.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "reports/internal/page.h"
#include "reports/internal/words.h"
#include "reports/table.h"

namespace isthmus::reports {
namespace {

constexpr std::size_t kShownLosses = 6;
constexpr std::size_t kShownLossesBetweenJobs = 4;

std::string InSeconds(double seconds) { return base::FormatSeconds(base::Seconds{seconds}); }
std::string InBytes(std::int64_t bytes) { return base::FormatBytes(base::Bytes{bytes}); }

// "llm gradient sync, reduce scatter"; what an exchange is goes without saying.
std::string InWords(const FlowCause& cause) {
  const std::string words = cause.module + " " + KindInWords(cause.purpose);
  const std::string job = cause.job.empty() ? "" : "job " + cause.job + ": ";
  return job + (cause.action == "exchange" ? words : words + ", " + KindInWords(cause.action));
}

// "gradient sync 82 %": most of it, and how much that is.
std::string Mostly(const LinkUse& use) {
  const auto most = std::max_element(
      use.traffic.begin(), use.traffic.end(),
      [](const auto& left, const auto& right) { return left.second < right.second; });
  if (most == use.traffic.end() || use.bytes == 0) return {};
  const double share = static_cast<double>(most->second) / static_cast<double>(use.bytes);
  return fmt::format("{} {}", KindInWords(most->first), base::FormatFraction(share));
}

class LinksPage : private Page {
 public:
  LinksPage(const LinkFigures& links, const TextOptions& options) : Page(options), links_(links) {}

  std::string RenderLossesToOthers() {
    std::vector<const LinkLossFigure*> losses;
    double lost_s = 0;
    for (const LinkLossFigure& loss : links_.losses) {
      if (!loss.victim.job.empty() || loss.culprit.job.empty()) continue;
      losses.push_back(&loss);
      lost_s += loss.lost_s;
    }
    Title("Slowed by other jobs", losses.empty()
                                      ? "nothing: no flow lost time to them"
                                      : fmt::format("flows lost {} in sum", InSeconds(lost_s)));
    AddLosses(losses, kShownLossesBetweenJobs);
    return std::move(text_);
  }

  std::string Render() {
    if (links_.kinds.empty()) {
      Title("Links", "nothing crossed any");
      return std::move(text_);
    }
    Kinds();
    TrafficByKind();
    Hottest();
    Losses();
    return std::move(text_);
  }

 private:
  std::string OverTime(const std::vector<double>& utilisations) const {
    return paint_(Hue::kAccent, Sparkline(utilisations));
  }
  static std::string Peak(const std::vector<double>& utilisations) {
    return utilisations.empty() ? "" : base::FormatFraction(std::ranges::max(utilisations));
  }

  void Kinds() {
    Title(
        "Links",
        fmt::format("shares of bandwidth, each direction by itself; over time in {} of {}",
                    base::Counted(static_cast<std::int64_t>(links_.kinds.front().over_time.size()),
                                  "bin", "bins"),
                    InSeconds(links_.bin_s)));
    Table rows({{"kind"},
                {"links used", Align::kRight},
                {"mean", Align::kRight},
                {"busiest", Align::kRight},
                {"peak of mean", Align::kRight},
                {"mean over time"}});
    for (const LinkKindUse& kind : links_.kinds) {
      rows.AddRow({KindInWords(kind.kind), base::FormatCount(kind.num_links),
                   base::FormatFraction(kind.utilisation),
                   base::FormatFraction(kind.highest_utilisation), Peak(kind.over_time),
                   OverTime(kind.over_time)});
    }
    text_ += rows.RenderText();
  }

  // What something is for, in the order of the kinds that it crosses first.
  std::vector<std::string> Purposes() const {
    std::vector<std::string> purposes;
    for (const LinkKindUse& kind : links_.kinds) {
      for (const auto& [purpose, bytes] : kind.traffic)
        if (std::ranges::find(purposes, purpose) == purposes.end()) purposes.push_back(purpose);
    }
    return purposes;
  }

  void TrafficByKind() {
    Title("Traffic", "summed over the links of a kind");
    std::vector<Column> columns = {{"what"}};
    for (const LinkKindUse& kind : links_.kinds)
      columns.push_back({KindInWords(kind.kind), Align::kRight});
    Table rows(std::move(columns));
    for (const std::string& purpose : Purposes()) {
      std::vector<std::string> cells = {KindInWords(purpose)};
      for (const LinkKindUse& kind : links_.kinds) {
        const auto bytes = std::ranges::find(kind.traffic, purpose, &Traffic::value_type::first);
        cells.push_back(bytes == kind.traffic.end() ? "" : InBytes(bytes->second));
      }
      rows.AddRow(std::move(cells));
    }
    text_ += rows.RenderText();
  }

  // What is told of each link, and the links that it is told of.
  std::vector<std::pair<std::vector<std::string>, std::vector<const LinkUse*>>> RowsOfHottest()
      const {
    std::vector<std::pair<std::vector<std::string>, std::vector<const LinkUse*>>> rows;
    for (const LinkUse& use : links_.hottest) {
      std::vector<std::string> cells = {KindInWords(use.kind),
                                        base::FormatFraction(use.utilisation), Peak(use.over_time),
                                        Mostly(use), OverTime(use.over_time)};
      const auto same = std::ranges::find(rows, cells, [](const auto& row) { return row.first; });
      if (same == rows.end()) {
        rows.emplace_back(std::move(cells), std::vector<const LinkUse*>{&use});
      } else {
        same->second.push_back(&use);
      }
    }
    return rows;
  }

  void Hottest() {
    if (links_.hottest.empty()) return;
    Title("Hottest links");
    Table rows({{"link"},
                {"kind"},
                {"used", Align::kRight},
                {"peak", Align::kRight},
                {"mostly"},
                {"over time"}});
    for (auto& [cells, alike] : RowsOfHottest()) {
      const LinkUse& use = *alike.front();
      std::string link = use.from + " → " + use.to;
      if (alike.size() > 1) link += fmt::format(" and {} alike", alike.size() - 1);
      cells.insert(cells.begin(), std::move(link));
      rows.AddRow(std::move(cells));
    }
    text_ += rows.RenderText();
  }

  void Losses() {
    if (links_.losses.empty()) {
      Title("Who slows whom", "nobody: every flow took what it takes alone");
      return;
    }
    Title("Who slows whom", fmt::format("{} took longer than alone, by {} in sum",
                                        base::Counted(links_.num_slow_flows, "flow", "flows"),
                                        InSeconds(links_.lost_s)));
    std::vector<const LinkLossFigure*> losses;
    for (const LinkLossFigure& loss : links_.losses) losses.push_back(&loss);
    AddLosses(losses, kShownLosses);
  }

  void AddLosses(const std::vector<const LinkLossFigure*>& losses, std::size_t most) {
    if (losses.empty()) return;
    Table rows({{"slowed"},
                {"by"},
                {"on"},
                {"flows", Align::kRight},
                {"lost in sum", Align::kRight},
                {"by one", Align::kRight},
                {"most of it on"}});
    const std::size_t shown = Shown(losses.size(), most);
    for (std::size_t index = 0; index < shown; ++index) {
      const LinkLossFigure& loss = *losses[index];
      rows.AddRow({InWords(loss.victim), InWords(loss.culprit),
                   base::FormatCount(loss.num_links) + " " + KindInWords(loss.kind),
                   base::FormatCount(loss.num_flows), InSeconds(loss.lost_s),
                   InSeconds(loss.longest_s), loss.worst_from + " → " + loss.worst_to});
    }
    text_ += rows.RenderText();
    More(losses.size() - shown);
  }

  const LinkFigures& links_;
};

}  // namespace

std::string RenderLinks(const LinkFigures& links, const TextOptions& options) {
  return LinksPage(links, options).Render();
}

std::string RenderLossesToOthers(const LinkFigures& links, const TextOptions& options) {
  return LinksPage(links, options).RenderLossesToOthers();
}

}  // namespace isthmus::reports
