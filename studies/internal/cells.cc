#include "studies/internal/cells.h"

#include <cmath>

#include <fmt/format.h>

namespace isthmus::studies::internal {

std::string Number(const std::optional<double>& value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "";
}

std::string Percent(const std::optional<double>& fraction) {
  return fraction ? fmt::format("{:.1f}", std::abs(*fraction) * 100) : "";
}

std::string SignedPercent(const std::optional<double>& fraction) {
  return fraction ? fmt::format("{:+.1f}", *fraction * 100) : "";
}

std::string Range(double low, double high) { return fmt::format("{:.3f} - {:.3f}", low, high); }

bool IsInBand(const RowResult& row) {
  if (!row.band || !row.run.measured_step_time_s) return false;
  return row.band->low_step_time_s <= *row.run.measured_step_time_s &&
         *row.run.measured_step_time_s <= row.band->high_step_time_s;
}

std::optional<double> ShareInBand(const RowGroup& group) {
  if (group.num_with_band == 0) return std::nullopt;
  return static_cast<double>(group.num_in_band) / group.num_with_band;
}

}  // namespace isthmus::studies::internal
