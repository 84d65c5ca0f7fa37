#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace isthmus::reports {

enum class Hue : unsigned char { kPlain, kStrong, kFaint, kGood, kWarning, kBad, kAccent };

/// Terminal colours, or none of them.
class Paint {
 public:
  explicit Paint(bool color) : color_(color) {}

  std::string operator()(Hue hue, const std::string& text) const;

 private:
  bool color_;
};

/// A bar of `fraction` of `width` characters, to an eighth of a character; a fraction above 0 shows
/// at least an eighth, one above 1 is a full bar.
std::string Bar(double fraction, std::size_t width);

/// A character each, in eighths of the largest; "·" is 0.
std::string Sparkline(const std::vector<double>& values);

}  // namespace isthmus::reports
