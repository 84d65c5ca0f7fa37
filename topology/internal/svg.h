#pragma once

#include <string>
#include <string_view>

namespace isthmus::topology::internal {

/// A drawing in SVG. Whatever the order of calls, frames lie at the bottom, then lines, boxes and
/// texts.
class Svg {
 public:
  /// How a line or the border of a box is drawn.
  struct Stroke {
    std::string_view colour = "#9aa0a6";
    double width = 1;
    bool is_dashed = false;
  };
  enum class Anchor { kStart, kMiddle, kEnd };

  void Line(double x1, double y1, double x2, double y2, const Stroke& stroke,
            std::string_view title = {});
  void Frame(double x, double y, double width, double height, std::string_view fill,
             const Stroke& stroke);
  /// `title` is shown by a browser where the pointer rests.
  void Box(double x, double y, double width, double height, std::string_view fill,
           const Stroke& stroke, std::string_view title = {});
  void Text(double x, double y, Anchor anchor, std::string_view text, double size = 11,
            std::string_view colour = "#202124");

  /// Where what has been drawn so far ends on the right, texts by an estimate.
  double right() const { return right_; }

  std::string Finish(double width, double height) const;

 private:
  void Reach(double x);

  double right_ = 0;
  std::string frames_;
  std::string lines_;
  std::string boxes_;
  std::string texts_;
};

}  // namespace isthmus::topology::internal
