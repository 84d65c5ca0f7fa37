#pragma once

#include <string>

#include "traces/measured_row.h"

namespace isthmus::sim {

/// A row as calibration writes it, of nine samples whose spread is 2 %.
inline traces::MeasuredRow Row(const std::string& table, const std::string& point, double value,
                               double core = 0) {
  return {.table = table,
          .point = point,
          .value = value,
          .core_s = core,
          .spread = 0.02,
          .num_samples = 9};
}

}  // namespace isthmus::sim
