#include "tests/support/random_trace.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"

namespace isthmus::tests_support {
namespace {

using base::RandomStream;
using traces::Category;
using traces::Event;
using traces::OpRecord;

constexpr std::array<const char*, 5> kTexts = {"forward", "", "llm \"quoted\", with comma",
                                               "ViT \xE2\x86\x92 LLM", "line\nbreak\\"};

enum Lane : std::uint16_t { kComputeLane, kGroupLane, kP2PLane, kNumLanes };

// Builds ops and their events together, with one clock per class and lane.
class Builder {
 public:
  Builder(std::uint64_t seed, const RandomTraceShape& shape)
      : random_(seed, "trace"),
        shape_(shape),
        clocks_(static_cast<std::size_t>(shape.num_classes)) {
    MakeFacts(seed);
    for (int index = 0; index < shape.num_classes; ++index) AddClass(index);
    for (int action = 0; action < shape.num_actions; ++action) Act();
    MakeTrailer();
  }

  traces::Trace Take() { return std::move(trace_); }

 private:
  std::string Text() { return random_.Pick(std::span<const char* const>(kTexts)); }
  std::int64_t Duration() {
    // From zero over parts of a nanosecond to a millisecond.
    const std::int64_t limit = random_.Pick(std::span<const std::int64_t>(kLimits));
    return random_.UniformInt(0, limit);
  }

  void MakeFacts(std::uint64_t seed);
  void AddClass(int index);
  void Act();
  void Compute(std::uint32_t rank_class);
  void Collective();
  void Message(std::uint32_t from, std::uint32_t to);
  void MakeTrailer();
  void AddKernels();
  std::uint32_t AddOp(std::uint32_t rank_class, OpRecord op);
  void AddMemory(std::uint32_t rank_class, std::int64_t time);
  void AddPieces(const Event& op, std::vector<Event>& events);
  std::int64_t& Clock(std::uint32_t rank_class, Lane lane) { return clocks_[rank_class][lane]; }

  static constexpr std::array<std::int64_t, 4> kLimits = {0, 900, 30'000, 1'000'000'000};

  RandomStream random_;
  RandomTraceShape shape_;
  std::vector<std::array<std::int64_t, kNumLanes>> clocks_;
  traces::Trace trace_;
};

void Builder::MakeFacts(std::uint64_t seed) {
  traces::Header& header = trace_.header;
  header.kind = random_.Chance(0.5) ? traces::TraceKind::kPredicted : traces::TraceKind::kMeasured;
  header.scenario_name = Text();
  header.program_hash = "0123456789abcdef";
  header.profile_name = Text();
  header.machine = Text();
  header.seed = seed;
  header.placement = "colocated";
  header.num_ranks = 8 * shape_.num_classes;
  header.num_steps = static_cast<std::int32_t>(random_.UniformInt(1, 3));
  header.tokens_per_step = random_.UniformInt(0, std::int64_t{1} << 40U);
  header.step_flops = {{"model", random_.UniformReal() * 1e18}, {"hardware", 2e18}};
  header.peak_flops_per_gpu = 989.4e12;
  header.expanded = random_.Chance(0.5);
  header.modules = {{Text(), "llm", "TP8 PP2 DP16", 0, 64, 7e10}, {"vision", "vit", "", 0, 8, 1e9}};
  header.boundaries = {{"vision", "llm", "local", 123, -456}};
  header.assumptions = {Text(), Text()};
  if (header.kind == traces::TraceKind::kMeasured) {
    header.measurement = {.step_times_ps = {900, random_.UniformInt(0, 1'000'000'000'000)},
                          .num_warmup_steps = 1,
                          .recorded_step = 1,
                          .software = {{"torch", "2.11.0"}, {Text(), Text()}}};
  }
  for (int group = 0; group < 2; ++group) {
    std::vector<std::uint32_t>& members = header.groups.emplace_back();
    for (int index = 0; index < shape_.num_classes; ++index) {
      members.push_back(static_cast<std::uint32_t>(index));
    }
  }
}

void Builder::AddClass(int index) {
  traces::RoleRecord role;
  role.name = Text();
  role.lanes = {{"compute", "compute"}, {"communicator", "llm dp"}, {"p2p", "p2p"}};
  role.groups = {"llm dp", "world"};
  role.blocks = {{{Text(), Category::kCompute}},
                 {{Text(), Category::kTpComm}, {"mlp", Category::kCpComm}}};
  trace_.header.roles.push_back(std::move(role));
  traces::RankClass rank_class;
  rank_class.representative = 8 * index;
  rank_class.count = 8;
  for (int member = 0; member < 8; ++member) rank_class.members.push_back(8 * index + member);
  rank_class.role = static_cast<std::uint32_t>(index);
  rank_class.node = index;
  rank_class.groups = {0, 1};
  for (int peer = 0; peer < shape_.num_classes; ++peer) {
    rank_class.peers.push_back(static_cast<std::uint32_t>(peer));
  }
  trace_.header.classes.push_back(std::move(rank_class));
}

std::uint32_t Builder::AddOp(std::uint32_t rank_class, OpRecord op) {
  std::vector<OpRecord>& ops = trace_.header.roles[rank_class].ops;
  op.name = Text();
  op.action = Text();
  op.module = static_cast<std::uint16_t>(random_.UniformInt(0, 1));
  op.chunk = static_cast<std::uint16_t>(random_.UniformInt(0, 2));
  op.microbatch = static_cast<std::int32_t>(random_.UniformInt(-1, 5));
  op.ends_backward = random_.Chance(0.1);
  op.bytes = random_.Chance(0.5) ? random_.UniformInt(0, 1'000'000'000) : 0;
  op.model_flops = random_.Chance(0.5) ? random_.UniformReal() * 1e15 : 0;
  if (!ops.empty()) {
    const std::int64_t last = static_cast<std::int64_t>(ops.size()) - 1;
    op.dependencies.push_back({static_cast<std::uint32_t>(random_.UniformInt(0, last)), 0});
  }
  ops.push_back(std::move(op));
  return static_cast<std::uint32_t>(ops.size() - 1);
}

void Builder::Act() {
  const auto last = static_cast<std::int64_t>(shape_.num_classes) - 1;
  const auto one = static_cast<std::uint32_t>(random_.UniformInt(0, last));
  const auto other = static_cast<std::uint32_t>(random_.UniformInt(0, last));
  if (one != other && random_.Chance(0.4)) {
    Message(one, other);
  } else if (random_.Chance(0.1)) {
    Collective();
  } else {
    Compute(one);
  }
}

void Builder::Compute(std::uint32_t rank_class) {
  OpRecord op;
  op.kind = "compute";
  op.lane = kComputeLane;
  op.inner_shares = {{Category::kCompute, 3}, {Category::kTpComm, 4}};
  op.block = static_cast<std::uint32_t>(random_.UniformInt(0, 2));
  Event event;
  event.rank_class = rank_class;
  event.op = AddOp(rank_class, std::move(op));
  event.issue_ps = Clock(rank_class, kComputeLane);
  event.start_ps = event.issue_ps + Duration();
  event.end_ps = event.start_ps + Duration();
  if (random_.Chance(0.2)) {
    trace_.trailer.waits.push_back({.rank_class = rank_class,
                                    .op = event.op,
                                    .start_ps = event.end_ps,
                                    .end_ps = event.end_ps + Duration(),
                                    .straggler = random_.Chance(0.5)});
    Clock(rank_class, kComputeLane) = trace_.trailer.waits.back().end_ps;
  } else {
    Clock(rank_class, kComputeLane) = event.end_ps;
  }
  if (random_.Chance(0.2)) {
    trace_.trailer.slowdowns.push_back(
        {.rank_class = rank_class, .op = event.op, .duration_ps = event.end_ps - event.start_ps});
  }
  std::vector<Event> events = {event};
  if (trace_.header.expanded) AddPieces(event, events);
  trace_.events.insert(trace_.events.end(), events.begin(), events.end());
  AddMemory(rank_class, event.start_ps);
}

// Pieces one after the other that fill the op; before it or after it, as producers may do.
void Builder::AddPieces(const Event& op, std::vector<Event>& events) {
  std::vector<Event> pieces;
  std::int64_t start = op.start_ps;
  const std::int64_t count = random_.UniformInt(1, 4);
  for (std::int64_t piece = 1; piece <= count; ++piece) {
    Event event = op;
    event.inner = static_cast<std::uint32_t>(piece);
    event.issue_ps = start;
    event.start_ps = start;
    event.end_ps = piece == count ? op.end_ps : random_.UniformInt(start, op.end_ps);
    start = event.end_ps;
    pieces.push_back(event);
  }
  events.insert(random_.Chance(0.5) ? events.begin() : events.end(), pieces.begin(), pieces.end());
}

void Builder::Collective() {
  std::int64_t start = 0;
  for (int index = 0; index < shape_.num_classes; ++index) {
    start = std::max(start, Clock(static_cast<std::uint32_t>(index), kGroupLane));
  }
  const std::int64_t end = start + Duration();
  for (int index = 0; index < shape_.num_classes; ++index) {
    const auto rank_class = static_cast<std::uint32_t>(index);
    OpRecord op;
    op.kind = "collective";
    op.category = Category::kDpComm;
    op.lane = kGroupLane;
    op.group = static_cast<std::uint32_t>(random_.UniformInt(1, 2));
    Event event;
    event.rank_class = rank_class;
    event.op = AddOp(rank_class, std::move(op));
    event.issue_ps = std::exchange(Clock(rank_class, kGroupLane), end);
    event.start_ps = start;
    event.end_ps = end;
    trace_.events.push_back(event);
  }
}

// One op on both sides. The lane is free again as soon as the message is posted, so the next one
// may overlap it. A message without bytes is skipped: it has no transfer events.
void Builder::Message(std::uint32_t from, std::uint32_t to) {
  const std::int64_t start = std::max(Clock(from, kP2PLane), Clock(to, kP2PLane)) + Duration();
  const std::int64_t end = start + Duration();
  const std::int64_t bytes = random_.Chance(0.9) ? random_.UniformInt(1, 1'000'000) : 0;
  for (const bool sends : {true, false}) {
    OpRecord op;
    op.kind = "p2p";
    op.category = Category::kPipelineComm;
    op.lane = kP2PLane;
    op.transfers = {{.sends = sends, .peer = sends ? to : from, .bytes = bytes}};
    Event event;
    event.rank_class = sends ? from : to;
    event.op = AddOp(event.rank_class, std::move(op));
    event.issue_ps = Clock(event.rank_class, kP2PLane);
    event.start_ps = start;
    event.end_ps = end;
    if (!sends && shape_.skewed_clocks) event.start_ps = event.issue_ps;
    trace_.events.push_back(event);
    event.inner = 1;
    if (bytes > 0) trace_.events.push_back(event);
  }
  Clock(from, kP2PLane) = start;
  Clock(to, kP2PLane) = start;
}

void Builder::AddMemory(std::uint32_t rank_class, std::int64_t time) {
  trace_.counters.push_back({.rank_class = rank_class,
                             .time_ps = time,
                             .bytes = random_.UniformInt(0, std::int64_t{80} << 30U)});
}

void Builder::AddKernels() {
  traces::Trailer& trailer = trace_.trailer;
  trailer.kernel_names = {Text(), "gemm"};
  for (const Event& event : trace_.events) {
    if (event.inner > 0) continue;
    trailer.kernels.push_back({.rank_class = event.rank_class,
                               .op = event.op,
                               .name = static_cast<std::uint32_t>(random_.UniformInt(0, 1)),
                               .stream = 7,
                               .start_ps = event.start_ps,
                               .end_ps = event.end_ps});
  }
}

void Builder::MakeTrailer() {
  traces::Trailer& trailer = trace_.trailer;
  for (const Event& event : trace_.events) trailer.end_ps = std::max(trailer.end_ps, event.end_ps);
  trailer.step_end_ps = {trailer.end_ps / 2, trailer.end_ps};
  for (int index = 0; index < shape_.num_classes; ++index) {
    traces::MemoryPeak& peak = trailer.memory.emplace_back();
    peak.rank_class = static_cast<std::uint32_t>(index);
    peak.time_ps = random_.UniformInt(0, trailer.end_ps);
    peak.peak_bytes = random_.UniformInt(0, std::int64_t{1} << 40U);
    peak.verdict = "fits";
    peak.moment = Text();
    peak.phase = "turn";
    peak.reserved_bytes = peak.peak_bytes + 56;
    peak.categories = {{"parameters", 12}, {"activations", 34}};
  }
  if (random_.Chance(0.5)) AddKernels();
  trailer.num_ops = trace_.events.size();
  trailer.simulated_ranks = shape_.num_classes;
  trailer.folded = random_.Chance(0.5);
}

}  // namespace

traces::Trace MakeRandomTrace(std::uint64_t seed, const RandomTraceShape& shape) {
  return Builder(seed, shape).Take();
}

std::int64_t CountReceives(const traces::Trace& trace) {
  return std::count_if(trace.events.begin(), trace.events.end(), [&](const Event& event) {
    const OpRecord& op =
        trace.header.roles[trace.header.classes[event.rank_class].role].ops[event.op];
    return event.inner > 0 && !op.transfers.empty() && !op.transfers[event.inner - 1].sends;
  });
}

}  // namespace isthmus::tests_support
