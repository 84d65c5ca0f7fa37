#include "reports/internal/paint.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace isthmus::reports {
namespace {

const char* SequenceOf(Hue hue) {
  switch (hue) {
    case Hue::kStrong:
      return "\x1b[1m";
    case Hue::kFaint:
      return "\x1b[2m";
    case Hue::kGood:
      return "\x1b[32m";
    case Hue::kWarning:
      return "\x1b[33m";
    case Hue::kBad:
      return "\x1b[1;31m";
    case Hue::kAccent:
      return "\x1b[36m";
    case Hue::kPlain:
      break;
  }
  return "";
}

}  // namespace

std::string Paint::operator()(Hue hue, const std::string& text) const {
  if (!color_ || hue == Hue::kPlain || text.empty()) return text;
  return SequenceOf(hue) + text + "\x1b[0m";
}

std::string Bar(double fraction, std::size_t width) {
  constexpr std::array<const char*, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!(fraction > 0)) return {};
  const double exact = std::min(fraction, 1.0) * static_cast<double>(width) * 8;
  const auto eighths = std::max<std::size_t>(1, static_cast<std::size_t>(std::llround(exact)));
  std::string bar;
  for (std::size_t full = 0; full < eighths / 8; ++full) bar += "█";
  return bar + kEighths[eighths % 8];
}

std::string Sparkline(const std::vector<double>& values) {
  constexpr std::array<const char*, 9> kHeights = {"·", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (values.empty()) return {};
  const double most = std::ranges::max(values);
  std::string line;
  for (const double value : values)
    line += kHeights[value > 0 ? static_cast<std::size_t>(std::ceil(value / most * 8)) : 0];
  return line;
}

}  // namespace isthmus::reports
