#include "backend/torch/record/measured_trace.h"

#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "backend/torch/record/host_place.h"
#include "backend/torch/record/median_step.h"
#include "base/hash.h"
#include "traces/clock_skew.h"
#include "traces/recorder.h"
#include "traces/trace_file.h"

namespace isthmus::backend {
namespace {

constexpr std::int64_t kFields = 5;  // of an event: op, inner, issue, start, end
constexpr std::int64_t kFacts = 3;   // of a rank: events, node, peak

// Differs between hosts, and between boots of one.
std::int64_t HostNumber() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  std::getline(file, text);
  return static_cast<std::int64_t>(base::HashBuilder().Add(text).digest());
}

at::Tensor GatherAll(const at::Tensor& part, Communicator& control) {
  at::Tensor whole = at::zeros({part.size(0) * control.size()}, at::kLong);
  control.AllGather(whole, part).Wait();
  return whole.view({control.size(), part.size(0)});
}

at::Tensor Pack(const std::vector<traces::Event>& events, std::int64_t most) {
  at::Tensor packed = at::zeros({most * kFields}, at::kLong);
  auto* field = packed.mutable_data_ptr<std::int64_t>();
  for (const traces::Event& event : events) {
    for (const std::int64_t value : {std::int64_t{event.op}, std::int64_t{event.inner},
                                     event.issue_ps, event.start_ps, event.end_ps}) {
      *field++ = value;
    }
  }
  return packed;
}

std::vector<traces::Event> Unpack(const at::Tensor& packed, const at::Tensor& facts) {
  std::vector<traces::Event> events;
  for (std::int64_t rank = 0; rank < packed.size(0); ++rank) {
    const at::Tensor row = packed[rank].contiguous();
    const auto* field = row.const_data_ptr<std::int64_t>();
    const std::int64_t count = facts[rank][0].item<std::int64_t>();
    for (std::int64_t at = 0; at < count; ++at, field += kFields) {
      events.push_back({.rank_class = static_cast<std::uint32_t>(rank),
                        .op = static_cast<std::uint32_t>(field[0]),
                        .inner = static_cast<std::uint32_t>(field[1]),
                        .issue_ps = field[2],
                        .start_ps = field[3],
                        .end_ps = field[4]});
    }
  }
  return events;
}

/// On one clock, from time 0 on, sends over when their receives are, starts in order.
void Normalise(traces::Trace& trace) {
  std::int64_t first = trace.events.front().issue_ps;
  for (const traces::Event& event : trace.events) first = std::min(first, event.issue_ps);
  for (traces::Event& event : trace.events) {
    for (std::int64_t* time : {&event.issue_ps, &event.start_ps, &event.end_ps}) *time -= first;
  }
  trace.trailer.step_end_ps = {0};
  traces::PutSendersOnOneClock(trace);
  for (const traces::Event& event : trace.events) {
    trace.trailer.end_ps = std::max(trace.trailer.end_ps, event.end_ps);
  }
  trace.trailer.step_end_ps = {trace.trailer.end_ps};
  std::stable_sort(trace.events.begin(), trace.events.end(),
                   [](const auto& a, const auto& b) { return a.start_ps < b.start_ps; });
}

void AddMeasurement(const RecordedSteps& recorded, std::size_t step, traces::Header& header) {
  header.measurement.step_times_ps = recorded.durations_ps;
  header.measurement.num_warmup_steps = static_cast<std::int32_t>(
      WarmupSteps(recorded.durations_ps.size(), recorded.num_warmup_steps));
  header.measurement.recorded_step = static_cast<std::int32_t>(step);
  header.measurement.software["torch"] = TORCH_VERSION;
}

}  // namespace

std::int32_t AgreeOnClock(Device& device, Communicator& control) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  at::Tensor mine = at::zeros({2}, at::kLong);
  mine[0] = HostNumber();
  mine[1] = std::int64_t{std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()};
  const at::Tensor all = GatherAll(mine, control);
  std::vector<std::int64_t> hosts;
  for (std::int64_t rank = 0; rank < control.size(); ++rank) {
    hosts.push_back(all[rank][0].item<std::int64_t>());
  }
  const HostPlace place = PlaceAmong(hosts, static_cast<std::size_t>(control.index()));
  // The steady clocks of two hosts have nothing to do with each other; ranks of one host share one.
  device.SetClock(all[static_cast<std::int64_t>(place.first_rank)][1].item<std::int64_t>());
  return place.node;
}

void WriteMeasuredTrace(const plan::Program& program, const RecordedSteps& recorded,
                        const RunFacts& facts, const std::string& path, Communicator& control) {
  at::Tensor chosen = at::zeros({1}, at::kLong);
  if (control.index() == 0)
    chosen.fill_(
        static_cast<std::int64_t>(MedianStep(recorded.durations_ps, recorded.num_warmup_steps)));
  control.AllReduce(chosen).Wait();
  const auto step = static_cast<std::size_t>(chosen.item<std::int64_t>());
  const std::vector<traces::Event>& events = recorded.steps[step];
  at::Tensor mine = at::zeros({kFacts}, at::kLong);
  mine[0] = static_cast<std::int64_t>(events.size());
  mine[1] = std::int64_t{recorded.node};
  mine[2] = recorded.peak_bytes;
  const at::Tensor rank_facts = GatherAll(mine, control);
  const std::int64_t most = rank_facts.select(1, 0).max().item<std::int64_t>();
  const at::Tensor packed = GatherAll(Pack(events, most), control);
  if (control.index() > 0) return;

  traces::Trace trace;
  trace.header = DescribeProgram(program, facts);
  AddMeasurement(recorded, step, trace.header);
  trace.events = Unpack(packed, rank_facts);
  for (std::size_t rank = 0; rank < trace.header.classes.size(); ++rank) {
    const auto row = static_cast<std::int64_t>(rank);
    trace.header.classes[rank].node = rank_facts[row][1].item<std::int32_t>();
    trace.trailer.memory.push_back({.rank_class = static_cast<std::uint32_t>(rank),
                                    .peak_bytes = rank_facts[row][2].item<std::int64_t>()});
    trace.trailer.num_ops += program.role(base::Rank{rank}).ops.size();
  }
  trace.trailer.simulated_ranks = program.num_ranks;
  Normalise(trace);
  traces::Replay(trace, *traces::OpenTraceFile(path));
}

}  // namespace isthmus::backend
