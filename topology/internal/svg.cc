#include "topology/internal/svg.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/utf8.h"
#include "base/xml.h"

namespace isthmus::topology::internal {
namespace {

std::string StrokeOf(const Svg::Stroke& stroke) {
  return fmt::format("stroke=\"{}\" stroke-width=\"{:g}\"{}", stroke.colour, stroke.width,
                     stroke.is_dashed ? " stroke-dasharray=\"4 3\"" : "");
}

std::string EndOf(std::string_view element, std::string_view title) {
  return title.empty() ? std::string("/>\n")
                       : fmt::format("><title>{}</title></{}>\n", base::EscapedXml(title), element);
}

std::string Rectangle(double x, double y, double width, double height, std::string_view fill,
                      const Svg::Stroke& stroke, std::string_view title) {
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"2\" fill=\"{}\" "
      "{}{}",
      x, y, width, height, fill, StrokeOf(stroke), EndOf("rect", title));
}

// About; letters of a sans-serif are mostly narrower.
double WidthOf(std::string_view text, double size) {
  return 0.56 * size * static_cast<double>(base::NumCharacters(text));
}

}  // namespace

void Svg::Reach(double x) { right_ = std::max(right_, x); }

void Svg::Line(double x1, double y1, double x2, double y2, const Stroke& stroke,
               std::string_view title) {
  Reach(std::max(x1, x2));
  lines_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}{}", x1,
                        y1, x2, y2, StrokeOf(stroke), EndOf("line", title));
}

void Svg::Frame(double x, double y, double width, double height, std::string_view fill,
                const Stroke& stroke) {
  Reach(x + width);
  frames_ += Rectangle(x, y, width, height, fill, stroke, {});
}

void Svg::Box(double x, double y, double width, double height, std::string_view fill,
              const Stroke& stroke, std::string_view title) {
  Reach(x + width);
  boxes_ += Rectangle(x, y, width, height, fill, stroke, title);
}

void Svg::Text(double x, double y, Anchor anchor, std::string_view text, double size,
               std::string_view colour) {
  constexpr double kAfter[] = {1, 0.5, 0};  // which part of a text lies right of its anchor
  Reach(x + kAfter[static_cast<int>(anchor)] * WidthOf(text, size));
  constexpr std::string_view kAnchors[] = {"start", "middle", "end"};
  texts_ += fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{:g}\" "
      "fill=\"{}\">{}</text>\n",
      x, y, kAnchors[static_cast<int>(anchor)], size, colour, base::EscapedXml(text));
}

std::string Svg::Finish(double width, double height) const {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
             "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\">\n"
             "<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"#ffffff\"/>\n",
             width, height) +
         frames_ + lines_ + boxes_ + texts_ + "</svg>\n";
}

}  // namespace isthmus::topology::internal
