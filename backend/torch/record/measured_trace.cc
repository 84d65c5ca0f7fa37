#include "backend/torch/record/measured_trace.h"

#include <torch/version.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <sstream>

#include "backend/launch/gpu_sharing.h"
#include "backend/torch/record/host_place.h"
#include "backend/torch/record/median_step.h"
#include "base/hash.h"
#include "traces/clock_skew.h"
#include "traces/recorder.h"
#include "traces/trace_file.h"

namespace isthmus::backend {
namespace {

constexpr std::int64_t kFields = 5;        // of an event: op, inner, issue, start, end
constexpr std::int64_t kKernelFields = 5;  // of a kernel: op, name, stream, start, end
constexpr std::int64_t kFacts = 7;  // of a rank: events, node, three of memory, kernels, name bytes

std::int64_t HostNumber() {
  return static_cast<std::int64_t>(base::HashBuilder().Add(HostIdentity()).digest());
}

at::Tensor GatherAll(const at::Tensor& part, Communicator& control) {
  at::Tensor whole = at::zeros({part.size(0) * control.size()}, part.options());
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

/// Names of kernels, one a line.
std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += name + '\n';
  return text;
}

at::Tensor PackText(const std::string& text, std::int64_t most) {
  at::Tensor packed = at::zeros({most}, at::kByte);
  std::copy(text.begin(), text.end(), packed.mutable_data_ptr<std::uint8_t>());
  return packed;
}

at::Tensor PackKernels(const std::vector<traces::KernelRun>& kernels, std::int64_t most) {
  at::Tensor packed = at::zeros({most * kKernelFields}, at::kLong);
  auto* field = packed.mutable_data_ptr<std::int64_t>();
  for (const traces::KernelRun& kernel : kernels) {
    for (const std::int64_t value : {std::int64_t{kernel.op}, std::int64_t{kernel.name},
                                     std::int64_t{kernel.stream}, kernel.start_ps, kernel.end_ps}) {
      *field++ = value;
    }
  }
  return packed;
}

/// Kernels of all ranks, with one list of names.
void UnpackKernels(const at::Tensor& packed, const at::Tensor& texts, const at::Tensor& facts,
                   traces::Trailer& trailer) {
  std::map<std::string, std::uint32_t> numbers;
  for (std::int64_t rank = 0; rank < packed.size(0); ++rank) {
    const at::Tensor text = texts[rank].contiguous();
    const auto* const bytes = text.const_data_ptr<std::uint8_t>();
    std::istringstream lines(std::string(bytes, bytes + facts[rank][6].item<std::int64_t>()));
    std::vector<std::uint32_t> number_of;
    for (std::string name; std::getline(lines, name);) {
      const auto next = static_cast<std::uint32_t>(trailer.kernel_names.size());
      const auto [found, is_new] = numbers.emplace(name, next);
      if (is_new) trailer.kernel_names.push_back(name);
      number_of.push_back(found->second);
    }
    const at::Tensor row = packed[rank].contiguous();
    const auto* field = row.const_data_ptr<std::int64_t>();
    const std::int64_t count = facts[rank][5].item<std::int64_t>();
    for (std::int64_t at = 0; at < count; ++at, field += kKernelFields) {
      trailer.kernels.push_back({.rank_class = static_cast<std::uint32_t>(rank),
                                 .op = static_cast<std::uint32_t>(field[0]),
                                 .name = number_of[static_cast<std::size_t>(field[1])],
                                 .stream = static_cast<std::uint32_t>(field[2]),
                                 .start_ps = field[3],
                                 .end_ps = field[4]});
    }
  }
}

/// On one clock, from time 0 on, sends over when their receives are, starts in order.
void Normalise(traces::Trace& trace) {
  std::int64_t first = trace.events.front().issue_ps;
  for (const traces::Event& event : trace.events) first = std::min(first, event.issue_ps);
  for (traces::Event& event : trace.events) {
    for (std::int64_t* time : {&event.issue_ps, &event.start_ps, &event.end_ps}) *time -= first;
  }
  for (traces::KernelRun& kernel : trace.trailer.kernels) {
    kernel.start_ps -= first;
    kernel.end_ps -= first;
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

at::Tensor FactsOf(const RecordedSteps& recorded, const RecordedStep& step,
                   const std::string& kernel_names) {
  const std::array<std::int64_t, kFacts> facts{static_cast<std::int64_t>(step.events.size()),
                                               recorded.node,
                                               recorded.memory.peak_allocated_bytes,
                                               recorded.memory.peak_reserved_bytes,
                                               recorded.memory.capacity_bytes,
                                               static_cast<std::int64_t>(step.kernels.size()),
                                               static_cast<std::int64_t>(kernel_names.size())};
  at::Tensor packed = at::zeros({kFacts}, at::kLong);
  std::copy(facts.begin(), facts.end(), packed.mutable_data_ptr<std::int64_t>());
  return packed;
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
  const RecordedStep& mine = recorded.steps[step];
  const std::string names = Joined(recorded.kernel_names);
  const at::Tensor rank_facts = GatherAll(FactsOf(recorded, mine, names), control);
  const auto most = [&](std::int64_t fact) {
    return rank_facts.select(1, fact).max().item<std::int64_t>();
  };
  const at::Tensor packed = GatherAll(Pack(mine.events, most(0)), control);
  at::Tensor kernels;
  at::Tensor kernel_names;
  if (most(5) > 0) {
    kernels = GatherAll(PackKernels(mine.kernels, most(5)), control);
    kernel_names = GatherAll(PackText(names, most(6)), control);
  }
  if (control.index() > 0) return;

  traces::Trace trace;
  trace.header = DescribeProgram(program, facts);
  AddMeasurement(recorded, step, trace.header);
  trace.events = Unpack(packed, rank_facts);
  for (std::size_t rank = 0; rank < trace.header.classes.size(); ++rank) {
    const auto row = static_cast<std::int64_t>(rank);
    trace.header.classes[rank].node = rank_facts[row][1].item<std::int32_t>();
    trace.trailer.memory.push_back({.rank_class = static_cast<std::uint32_t>(rank),
                                    .peak_bytes = rank_facts[row][2].item<std::int64_t>(),
                                    .reserved_bytes = rank_facts[row][3].item<std::int64_t>(),
                                    .capacity_bytes = rank_facts[row][4].item<std::int64_t>()});
    trace.trailer.num_ops += program.role(base::Rank{rank}).ops.size();
  }
  trace.trailer.simulated_ranks = program.num_ranks;
  if (kernels.defined()) UnpackKernels(kernels, kernel_names, rank_facts, trace.trailer);
  Normalise(trace);
  traces::Replay(trace, *traces::OpenTraceFile(path));
}

}  // namespace isthmus::backend
