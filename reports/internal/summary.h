#pragma once

#include <vector>

#include "reports/figures.h"
#include "reports/internal/critical_path.h"
#include "reports/internal/run_record.h"
#include "reports/internal/time_split.h"
#include "reports/internal/window.h"
#include "traces/trace.h"

/// The parts of Figures, each from what was recorded.
namespace isthmus::reports {

/// Who, what and how: names, hashes, layouts, assumptions.
void DescribeRun(const traces::Header& header, Figures& figures);

/// Step time and the rates that follow from it. MFU counts the FLOPs of the convention whose name
/// Header::flop_convention begins with, "model" when it begins with none; HFU counts "hardware".
void ComputeRates(const traces::Header& header, const Window& window, Figures& figures);

/// Means over ranks of what SplitTime found, by use, role, kind and edge.
void AverageTime(const RunRecord& record, const Window& window,
                 const std::vector<ClassSplit>& splits, Figures& figures);

void SummarizePath(const RunRecord& record, const Window& window, const CriticalPath& path,
                   Figures& figures);
/// Every piece, first to last.
void ListPath(const RunRecord& record, const Window& window, const CriticalPath& path,
              Figures& figures);

void SummarizeMemory(const RunRecord& record, const traces::Trailer& trailer, Figures& figures);

}  // namespace isthmus::reports
