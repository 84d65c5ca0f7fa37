#include "studies/scatter_svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/xml.h"
#include "studies/error_statistics.h"

namespace isthmus::studies {
namespace {

constexpr double kLeft = 70;
constexpr double kTop = 40;
constexpr double kSide = 560;  // of the square plot
constexpr double kLegend = 310;
constexpr double kWidth = kLeft + kSide + 20 + kLegend;
constexpr double kHeight = kTop + kSide + 60;
// Okabe and Ito's colours, told apart with impaired colour vision too; black comes last.
constexpr std::array<std::string_view, 8> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                      "#e69f00", "#56b4e9", "#8c8c00", "#000000"};
// A second lap through the colours gets hollow points.
constexpr std::size_t kLap = kColours.size();

struct Point {
  double measured = 0;
  double predicted = 0;
  const RowResult* row = nullptr;
};

struct Series {
  std::string name;
  std::vector<Point> points;
};

std::vector<Series> SeriesOf(const Validation& validation) {
  const bool has_sets =
      std::ranges::any_of(validation.rows, [](const RowResult& row) { return !row.set.empty(); });
  std::vector<Series> all;
  for (const RowResult& row : validation.rows) {
    const bool is_plotted =
        row.error && *row.run.measured_step_time_s > 0 && *row.predicted_step_time_s > 0;
    if (!is_plotted) continue;
    const std::string name = !has_sets ? row.run.table : row.set.empty() ? "in no set" : row.set;
    auto found = std::ranges::find(all, name, &Series::name);
    if (found == all.end()) found = all.insert(found, Series{name, {}});
    found->points.push_back({*row.run.measured_step_time_s, *row.predicted_step_time_s, &row});
  }
  return all;
}

// One axis for both directions, so that the diagonal is one.
class LogAxis {
 public:
  explicit LogAxis(const std::vector<Series>& all) {
    double low = 1e300;
    double high = 0;
    for (const Series& series : all) {
      for (const Point& point : series.points) {
        low = std::min({low, point.measured, point.predicted});
        high = std::max({high, point.measured, point.predicted});
      }
    }
    constexpr double kRoom = 1.2;
    low_ = std::log10(low / kRoom);
    high_ = std::log10(high * kRoom);
  }

  double x(double seconds) const { return kLeft + Share(seconds) * kSide; }
  double y(double seconds) const { return kTop + (1 - Share(seconds)) * kSide; }

  // 1, 2 and 5 of every decade in range.
  std::vector<double> Ticks() const {
    std::vector<double> ticks;
    for (int decade = static_cast<int>(std::floor(low_)); decade <= high_; ++decade) {
      for (const double digit : {1.0, 2.0, 5.0}) {
        const double tick = digit * std::pow(10.0, decade);
        if (std::log10(tick) >= low_ && std::log10(tick) <= high_) ticks.push_back(tick);
      }
    }
    return ticks;
  }

  // The line predicted = factor · measured, cut to the plot.
  std::pair<double, double> Ends(double factor) const {
    const double low = std::max(low_, low_ - std::log10(factor));
    const double high = std::min(high_, high_ - std::log10(factor));
    return {std::pow(10.0, low), std::pow(10.0, high)};
  }

 private:
  double Share(double seconds) const { return (std::log10(seconds) - low_) / (high_ - low_); }

  double low_ = 0;
  double high_ = 1;
};

std::string Line(double x1, double y1, double x2, double y2, std::string_view style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1,
                     x2, y2, style);
}

std::string Text(double x, double y, std::string_view anchor, std::string_view text,
                 std::string_view more = {}) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y,
                     anchor, more, base::EscapedXml(text));
}

std::string AxesOf(const LogAxis& axis) {
  std::string svg;
  const double bottom = kTop + kSide;
  for (const double tick : axis.Ticks()) {
    const double x = axis.x(tick);
    const double y = axis.y(tick);
    svg += Line(x, kTop, x, bottom, "stroke=\"#e4e4e4\"");
    svg += Line(kLeft, y, kLeft + kSide, y, "stroke=\"#e4e4e4\"");
    svg += Text(x, bottom + 18, "middle", fmt::format("{:g}", tick));
    svg += Text(kLeft - 8, y + 4, "end", fmt::format("{:g}", tick));
  }
  for (const double factor : {0.9, 1.0, 1.1}) {
    const auto [low, high] = axis.Ends(factor);
    const char* style =
        factor == 1.0 ? "stroke=\"#333333\"" : "stroke=\"#888888\" stroke-dasharray=\"5 4\"";
    svg += Line(axis.x(low), axis.y(low * factor), axis.x(high), axis.y(high * factor), style);
  }
  svg += fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#333333\"/>\n",
      kLeft, kTop, kSide, kSide);
  svg += Text(kLeft + kSide / 2, bottom + 42, "middle", "measured step time, s");
  const std::string turned = fmt::format(" transform=\"rotate(-90 18 {:.1f})\"", kTop + kSide / 2);
  return svg + Text(18, kTop + kSide / 2, "middle", "predicted step time, s", turned);
}

std::string Dot(double x, double y, std::size_t index, std::string_view title) {
  const std::string_view colour = kColours[index % kLap];
  const bool is_hollow = index / kLap % 2 == 1;
  const std::string inside = title.empty() ? "" : fmt::format("<title>{}</title>", title);
  return fmt::format(
      "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\" fill-opacity=\"0.7\" "
      "stroke=\"{}\">{}</circle>\n",
      x, y, is_hollow ? "#ffffff" : colour, colour, inside);
}

std::string LegendOf(const std::vector<Series>& all) {
  std::string svg;
  const double x = kLeft + kSide + 24;
  double y = kTop + 12;
  for (std::size_t index = 0; index < all.size(); ++index, y += 20) {
    std::vector<double> errors;
    for (const Point& point : all[index].points) {
      errors.push_back(point.predicted / point.measured - 1);
    }
    const ErrorStatistics statistics = Summarise(errors);
    svg += Dot(x, y - 4, index, {});
    svg += Text(x + 12, y, "start",
                fmt::format("{}: {} rows, median {:.1f} %", all[index].name, statistics.n,
                            *statistics.median_abs_error * 100));
  }
  return svg + Text(x + 12, y + 8, "start", "dashed: 10 % above and below");
}

}  // namespace

std::string RenderScatterSvg(const Validation& validation) {
  const std::vector<Series> all = SeriesOf(validation);
  if (all.empty()) return {};
  const LogAxis axis(all);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
      kWidth, kHeight);
  svg += Text(kLeft, 24, "start", "Step time, predicted beside measured", " font-size=\"15\"");
  svg += AxesOf(axis);
  for (std::size_t index = 0; index < all.size(); ++index) {
    for (const Point& point : all[index].points) {
      const std::string title = base::EscapedXml(fmt::format(
          "{} {}: {:.3f} s measured, {:.3f} s predicted, {:+.1f} %", point.row->run.row_id,
          point.row->run.model, point.measured, point.predicted, *point.row->error * 100));
      svg += Dot(axis.x(point.measured), axis.y(point.predicted), index, title);
    }
  }
  return svg + LegendOf(all) + "</svg>\n";
}

}  // namespace isthmus::studies
