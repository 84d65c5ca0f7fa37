#include "reports/analysis.h"

#include <optional>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "reports/forward_backward.h"
#include "reports/internal/critical_path.h"
#include "reports/internal/run_record.h"
#include "reports/internal/summary.h"
#include "reports/internal/time_split.h"
#include "reports/internal/window.h"
#include "reports/islands.h"

namespace isthmus::reports {

const char* ToText(TimeUse use) {
  switch (use) {
    case TimeUse::kCompute:
      return "compute";
    case TimeUse::kCopy:
      return "copy";
    case TimeUse::kBubble:
      return "bubble";
    case TimeUse::kExposedComm:
      return "exposed_comm";
    case TimeUse::kStraggler:
      return "straggler";
    case TimeUse::kHost:
      return "host";
  }
  return "unknown";
}

struct Analysis::State {
  // Of the header, all but the ops, which `record` holds in compact form.
  traces::Header header;
  std::optional<RunRecord> record;
  ForwardBackward forward_backward;
  Islands islands;
  Figures figures;
  Path kept_path = Path::kSums;
  bool complete = false;
};

Analysis::Analysis(Path path) : state_(std::make_unique<State>()) { state_->kept_path = path; }
Analysis::~Analysis() = default;

void Analysis::OnHeader(const traces::Header& header) {
  DescribeRun(header, state_->figures);
  traces::Header& kept = state_->header;
  kept.num_ranks = header.num_ranks;
  kept.num_steps = header.num_steps;
  kept.tokens_per_step = header.tokens_per_step;
  kept.samples_per_step = header.samples_per_step;
  kept.step_flops = header.step_flops;
  kept.flop_convention = header.flop_convention;
  kept.peak_flops_per_gpu = header.peak_flops_per_gpu;
  state_->record.emplace(header);
  state_->forward_backward.OnHeader(header);
  state_->islands.OnHeader(header);
}

void Analysis::OnEvents(std::span<const traces::Event> events) {
  if (!state_->record) throw base::Error("trace: events come before the header");
  RunRecord& record = *state_->record;
  for (const traces::Event& event : events) record.Add(event);  // checks what they name
  state_->forward_backward.OnEvents(events);
  state_->islands.OnEvents(events);
}

void Analysis::OnMemory(std::span<const traces::MemoryCounter> /*counters*/) {}

void Analysis::OnTrailer(const traces::Trailer& trailer) {
  if (!state_->record) throw base::Error("trace: the trailer comes before the header");
  RunRecord& record = *state_->record;
  Figures& figures = state_->figures;
  figures.has_times = trailer.end_ps > 0 || trailer.num_ops > 0;
  if (figures.has_times) TakeTimes(trailer);
  SummarizeMemory(record, trailer, figures);
  figures.num_ops = trailer.num_ops;
  figures.folded = trailer.folded;
  figures.simulated_ranks = trailer.simulated_ranks;
  state_->record.reset();
  state_->complete = true;
}

void Analysis::TakeTimes(const traces::Trailer& trailer) {
  RunRecord& record = *state_->record;
  Figures& figures = state_->figures;
  record.Finish(trailer);
  const Window window = WindowOf(state_->header, trailer, record);
  ComputeRates(state_->header, window, figures);
  std::vector<ClassSplit> splits;
  splits.reserve(record.num_classes());
  for (std::uint32_t index = 0; index < record.num_classes(); ++index) {
    splits.push_back(SplitTime(record, index, window, figures.boundaries.size()));
  }
  AverageTime(record, window, splits, figures);
  const CriticalPath path = FindCriticalPath(record, window);
  SummarizePath(record, window, path, figures);
  if (state_->kept_path == Path::kWhole) ListPath(record, window, path, figures);
  state_->forward_backward.OnTrailer(trailer);
  constexpr double kPicosecond = 1e-12;
  figures.forward_backward_s =
      static_cast<double>(state_->forward_backward.duration_ps().value_or(0)) * kPicosecond;
  figures.islands = state_->islands.figures();
}

const Figures& Analysis::figures() const {
  ISTHMUS_CHECK(state_->complete, "figures of a trace whose trailer has not come");
  return state_->figures;
}

}  // namespace isthmus::reports
