#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "reports/internal/paint.h"
#include "reports/table.h"
#include "reports/text.h"

namespace isthmus::reports {

/// A report under construction for a terminal: lines, titles and lists, cut to what is shown
/// without
/// --verbose. Reports are written by its children, section by section.
class Page {
 protected:
  explicit Page(const TextOptions& options)
      : verbose_(options.verbose),
        paint_(options.color),
        width_(static_cast<std::size_t>(std::max(options.width, 60))) {}

  void Line(const std::string& line) { text_ += line + '\n'; }
  void Title(const std::string& title, const std::string& remark = {}) {
    Line("");
    Line(paint_(Hue::kStrong, title) + (remark.empty() ? "" : paint_(Hue::kFaint, "  " + remark)));
  }
  /// Of `count` entries.
  std::size_t Shown(std::size_t count, std::size_t most) const {
    return verbose_ ? count : std::min(count, most);
  }
  /// What Shown() left out.
  void More(std::size_t count) {
    if (count == 0) return;
    Line(paint_(Hue::kFaint, fmt::format("  and {} more (--verbose shows all)", count)));
  }
  /// A line each.
  void Bullets(const std::vector<std::string>& entries, std::size_t most) {
    constexpr std::size_t kBullet = 4;
    const std::size_t shown = Shown(entries.size(), most);
    for (std::size_t index = 0; index < shown; ++index) {
      Line("  · " + (verbose_ ? entries[index] : Shorten(entries[index], width_ - kBullet)));
    }
    More(entries.size() - shown);
  }

  bool verbose_;
  Paint paint_;
  std::size_t width_;
  std::string text_;
};

}  // namespace isthmus::reports
