// Whatever is drawn, physics holds: no kernel above the data sheet's peak, no link above its rate,
// no step faster than what its busiest resource needs, and more bandwidth, rate or memory is never
// slower.

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "plan/program/program.h"
#include "scenarios/scenario.h"
#include "sim/cost/host_model.h"
#include "sim/cost/kernel_model.h"
#include "sim/cost/nccl_model.h"
#include "sim/engine/engine.h"
#include "sim/engine/lower.h"
#include "tests/support/random_job.h"
#include "tests/support/work_sums.h"
#include "topology/cluster.h"
#include "topology/presets.h"

namespace isthmus {
namespace {

constexpr double kRounding = 1e-9;  // sums of the same figures in another order
// Of measured network rates: much more would beat the wire, which is refused.
constexpr double kSlightly = 1.001;
constexpr int kNumKernels = 4'000;
constexpr int kNumCollectives = 6'000;
constexpr int kNumJobs = 120;
constexpr int kMaxRanks = 32;

const char* const kGpus[] = {"h100-sxm", "h200-sxm", "a100-sxm"};

/// Sizes of training, even and odd, over all magnitudes.
std::int64_t Dimension(base::RandomStream& random, int max_doublings) {
  const std::int64_t power = std::int64_t{1} << random.UniformInt(0, max_doublings);
  return std::max<std::int64_t>(1, power + (random.Chance(0.3) ? random.UniformInt(-7, 9) : 0));
}

plan::Gemm RandomGemm(base::RandomStream& random, bool has_fp8) {
  plan::Gemm gemm;
  gemm.m = Dimension(random, 17);
  gemm.n = Dimension(random, 17);
  gemm.k = Dimension(random, 17);
  gemm.output_bytes = base::Bytes(gemm.m * gemm.n * (random.Chance(0.5) ? 2 : 8));
  if (has_fp8 && random.Chance(0.5)) {
    gemm.dtype = plan::DType::kFp8;
    gemm.promoted_accumulation = random.Chance(0.5);
    gemm.block_scaled = random.Chance(0.3);
  }
  gemm.in_fp8_run = has_fp8 && random.Chance(0.3);
  return gemm;
}

plan::Attention RandomAttention(base::RandomStream& random, bool has_cudnn) {
  using plan::AttentionKernel;
  plan::Attention attention;
  attention.num_sequences = random.UniformInt(1, 8);
  attention.query_len = Dimension(random, 16);
  attention.kv_len = random.Chance(0.7) ? attention.query_len : Dimension(random, 16);
  attention.heads = random.UniformInt(1, 64);
  attention.kv_heads = 1;
  attention.head_dim = random.UniformInt(16, 256);
  attention.causal = random.Chance(0.5);
  attention.backward = random.Chance(0.5);
  attention.in_fp8_run = has_cudnn && random.Chance(0.3);  // as GPUs with cuDNN's have fp8
  attention.variable_length = random.Chance(0.3);
  constexpr AttentionKernel kAll[] = {AttentionKernel::kUnfused, AttentionKernel::kFlash2,
                                      AttentionKernel::kFlash1, AttentionKernel::kCudnn,
                                      AttentionKernel::kFlash3};
  attention.kernel = kAll[random.UniformInt(0, has_cudnn ? 4 : 2)];
  // flash1, and anything on Ampere, was measured up to heads of 128.
  if (!has_cudnn || attention.kernel == AttentionKernel::kFlash1) {
    attention.head_dim = std::min<std::int64_t>(attention.head_dim, 128);
  }
  return attention;
}

constexpr auto kLastClass = static_cast<int>(plan::MemoryClass::kHeadNormBackward);

plan::Kernel RandomKernel(base::RandomStream& random, const std::string& gpu) {
  const bool is_hopper = gpu != "a100-sxm";
  const std::int64_t kind = random.UniformInt(0, 2);
  if (kind == 0) return RandomGemm(random, is_hopper);
  if (kind == 1) return RandomAttention(random, is_hopper);
  return plan::MemoryBound{static_cast<plan::MemoryClass>(random.UniformInt(0, kLastClass)),
                           base::Bytes(Dimension(random, 36)),
                           static_cast<int>(random.UniformInt(1, 5))};
}

/// A change of a machine for the better: parameters that start and end as given, times `factor`.
struct Change {
  const char* prefix;
  const char* suffix;
  double limit = 1e300;  // shares stay shares
};

const std::vector<Change> kKernelChanges = {{"gemm.", ".peak_rate"},
                                            {"gemm.", ".memory_bandwidth"},
                                            {"gemm.", "half_tile_efficiency", 1},
                                            {"attention.", ".rate"},
                                            {"memory.", ".efficiency", 1},
                                            {"clock.", ".ratio", 1},
                                            {"device.memory_bandwidth", ""}};

const std::vector<Change> kNetworkChanges = {{"collective.node.", ".bandwidth"},
                                             {"collective.nodes.", "bandwidth"},
                                             {"collective.nodes.", "bandwidth_2_nodes"},
                                             {"collective.nodes.", "_efficiency", 1},
                                             {"p2p.", "_efficiency", 1},
                                             {"copy.", ".bandwidth"},
                                             {"device.usable_memory", ""}};

/// `data_sheet` raises the bounds along, so that no model is refused for beating them.
profiles::Profile Better(const profiles::Profile& profile, const Change& change, double factor,
                         bool data_sheet) {
  profiles::ProfileBuilder changes("better");
  int num_changed = 0;
  for (const auto& [key, parameter] : profile.parameters()) {
    const bool is_bound = data_sheet && (key.starts_with("device.peak_rate."));
    const bool is_meant = key.starts_with(change.prefix) && key.ends_with(change.suffix);
    if (!is_meant && !is_bound) continue;
    profiles::Parameter better = parameter;
    better.value *= factor;
    if (is_meant) better.value = std::max(parameter.value, std::min(better.value, change.limit));
    changes.Set(key, better);
    num_changed += is_meant ? 1 : 0;
  }
  EXPECT_GT(num_changed, 0) << change.prefix << "*" << change.suffix;
  return profiles::MergeProfiles(profile.name(), {profile, std::move(changes).Build()});
}

TEST(Physics, NoKernelBeatsTheDataSheet) {
  for (const std::string gpu : kGpus) {
    const profiles::Profile profile = scenarios::LoadProfile(gpu);
    const sim::KernelModel model(profile);
    base::RandomStream random(7, "kernels of " + gpu);
    for (int i = 0; i < kNumKernels; ++i) {
      const plan::Kernel kernel = RandomKernel(random, gpu);
      const double time = model.Time(kernel).value();  // throws if it does
      if (const auto* gemm = std::get_if<plan::Gemm>(&kernel)) {
        const char* peak =
            gemm->dtype == plan::DType::kFp8 ? "device.peak_rate.fp8" : "device.peak_rate.bf16";
        ASSERT_LE(plan::FlopsOf(*gemm).value(), time * profile.Rate(peak).value() * (1 + kRounding))
            << gpu << " gemm " << gemm->m << " x " << gemm->n << " x " << gemm->k;
      } else if (const auto* bound = std::get_if<plan::MemoryBound>(&kernel)) {
        ASSERT_LE(static_cast<double>(bound->bytes.value()),
                  time * profile.Bandwidth("device.memory_bandwidth").value() * (1 + kRounding));
      } else {
        ASSERT_LE(plan::FlopsOf(std::get<plan::Attention>(kernel)).value(),
                  time * profile.Rate("device.peak_rate.bf16").value() * (1 + kRounding));
      }
    }
  }
}

TEST(Physics, AFasterMachineIsNeverSlowerAtAKernel) {
  for (const std::string gpu : kGpus) {
    const profiles::Profile profile = scenarios::LoadProfile(gpu);
    const sim::KernelModel model(profile);
    for (const Change& change : kKernelChanges) {
      base::RandomStream random(11, gpu + change.prefix + change.suffix);
      const sim::KernelModel faster(Better(profile, change, 1 + random.UniformReal(), true));
      for (int i = 0; i < kNumKernels / 10; ++i) {
        const plan::Kernel kernel = RandomKernel(random, gpu);
        ASSERT_LE(faster.Time(kernel), model.Time(kernel)) << gpu << " " << change.prefix;
      }
    }
  }
}

topology::GroupLocality RandomGroup(base::RandomStream& random) {
  topology::GroupLocality group;
  group.num_nodes = random.Chance(0.4) ? 1 : static_cast<int>(random.UniformInt(2, 600));
  group.min_ranks_per_node = static_cast<int>(random.UniformInt(group.num_nodes == 1 ? 2 : 1, 8));
  group.max_ranks_per_node = group.min_ranks_per_node;
  group.num_ranks = group.num_nodes * group.min_ranks_per_node;
  group.num_devices = group.num_ranks;
  group.num_rails = group.min_ranks_per_node;
  group.min_nics_per_node = group.min_ranks_per_node;
  group.slowest_nvlink = base::BytesPerSecond(300e9 * (random.Chance(0.7) ? 1 : 0.3));
  group.slowest_nic = base::BytesPerSecond(25e9 * (random.Chance(0.7) ? 1 : 0.3));
  return group;
}

plan::CollectiveKind RandomKind(base::RandomStream& random) {
  return static_cast<plan::CollectiveKind>(random.UniformInt(0, 7));
}

TEST(Physics, NoCollectiveBeatsTheWireAndFasterLinksAreNeverSlower) {
  for (const std::string gpu : kGpus) {
    const profiles::Profile profile = scenarios::LoadProfile(gpu);
    const sim::NcclModel model(profile);
    const sim::WireModel wire;
    std::vector<sim::NcclModel> better;
    better.reserve(kNetworkChanges.size());
    for (const Change& change : kNetworkChanges) {
      better.emplace_back(Better(profile, change, kSlightly, false));
    }
    base::RandomStream random(13, "collectives of " + gpu);
    for (int i = 0; i < kNumCollectives; ++i) {
      const plan::CollectiveKind kind = RandomKind(random);
      const base::Bytes size(Dimension(random, 38));
      topology::GroupLocality group = RandomGroup(random);
      const base::Seconds time = model.Time(kind, size, group);
      ASSERT_GE(time.value(), wire.Time(kind, size, group).value() * (1 - kRounding));
      const std::string what =
          fmt::format("{} {} of {} over {} nodes of {}", gpu, plan::ToText(kind), size.value(),
                      group.num_nodes, group.min_ranks_per_node);
      ASSERT_GE(model.Time(kind, base::Bytes(size.value() + 1 + size.value() / 7), group), time)
          << "more bytes, less time: " << what;
      topology::GroupLocality faster = group;
      base::BytesPerSecond& link = random.Chance(0.5) ? faster.slowest_nvlink : faster.slowest_nic;
      link = link * (1 + random.UniformReal());
      ASSERT_LE(model.Time(kind, size, faster), time) << what;
      // Better software needs links that let it be.
      faster.slowest_nvlink = group.slowest_nvlink * kSlightly;
      faster.slowest_nic = group.slowest_nic * kSlightly;
      for (const sim::NcclModel& improved : better) {
        ASSERT_LE(improved.Time(kind, size, faster), time) << what;
      }
    }
  }
}

/// Every third job trains in fp8.
plan::Job RandomJob(std::uint64_t seed) {
  plan::Job job = tests::RandomJob(seed, {.max_ranks = kMaxRanks});
  if (seed % 3 == 0) {
    for (plan::Module& module : job.modules) module.settings.precision = plan::DType::kFp8;
  }
  return job;
}

/// A job's program on a machine, to be timed as the step it is.
class Step {
 public:
  explicit Step(const plan::Job& job) : program_(plan::Build(job)) {}

  const plan::Program& program() const { return program_; }

  std::int64_t EndPs(const profiles::Profile& profile, const topology::ClusterSpec& spec) const {
    const sim::KernelModel kernels(profile);
    const sim::NcclModel collectives(profile);
    const sim::SegmentModel segments(profile, kernels, collectives);
    const topology::Cluster cluster(spec);
    const sim::CostModels models{
        .segments = &segments, .collectives = &collectives, .host = sim::HostModel(profile)};
    const sim::Lowered lowered = sim::Lower(program_, cluster, models, /*fold=*/true);
    const sim::EngineOptions options{.straggler_share = 0.0131,
                                     .sync_contention = segments.gradient_sync_share(),
                                     .step_overhead_ps = 15'000'000};
    const sim::EngineResult result = sim::Engine(lowered, options, nullptr).Run();
    EXPECT_FALSE(result.deadlock);
    return result.end_ps;
  }

 private:
  plan::Program program_;
};

/// What keeps a rank's tensor cores and memory busy at the data sheet's rates.
double KernelSeconds(const plan::Program& program, base::Rank rank,
                     const sim::RooflineModel& roofline) {
  double seconds = 0;
  for (const plan::Op& op : program.role(rank).ops) {
    if (op.kind != plan::OpKind::kCompute && op.kind != plan::OpKind::kOptimizer) continue;
    tests::ForEachSegment(program.WorkOf(rank, op), [&](const plan::Segment& segment, int count) {
      for (const plan::Kernel& kernel : segment.kernels) {
        seconds += count * roofline.Time(kernel).value();
      }
    });
  }
  return seconds;
}

/// The longest time that collectives of one of a rank's communicators need on their links.
double WireSeconds(const plan::Program& program, base::Rank rank,
                   const topology::Cluster& cluster) {
  const sim::WireModel wire;
  const plan::Role& role = program.role(rank);
  std::map<std::uint16_t, double> by_lane;
  double longest = 0;
  for (const plan::Op& op : role.ops) {
    if (op.kind != plan::OpKind::kCollective) continue;
    const std::vector<base::Rank> members = program.Members(rank, role.groups[op.group]);
    if (members.size() < 2) continue;
    double& lane = by_lane[op.lane];
    lane +=
        wire.Time(op.collective(), program.Size(rank, op.size), cluster.Locality(members)).value();
    longest = std::max(longest, lane);
  }
  return longest;
}

TEST(Physics, NoStepIsFasterThanItsBusiestResource) {
  const profiles::Profile profile = scenarios::LoadProfile("h100-sxm");
  const sim::RooflineModel roofline(profile);
  for (std::uint64_t seed = 0; seed < kNumJobs; ++seed) {
    const plan::Job job = RandomJob(seed);
    SCOPED_TRACE(tests::Summary(job));
    const Step step(job);
    const topology::ClusterSpec spec = topology::H100Dgx(kMaxRanks / 8);
    const topology::Cluster cluster(spec);
    const double seconds = static_cast<double>(step.EndPs(profile, spec)) * 1e-12;
    for (int rank = 0; rank < step.program().num_ranks; ++rank) {
      ASSERT_GE(seconds * (1 + kRounding),
                KernelSeconds(step.program(), base::Rank(rank), roofline));
      ASSERT_GE(seconds * (1 + kRounding), WireSeconds(step.program(), base::Rank(rank), cluster));
    }
  }
}

/// The cluster with one kind of link faster.
topology::ClusterSpec FasterLinks(topology::ClusterSpec spec, int kind, double factor) {
  for (topology::NodeGroup& group : spec.node_groups) {
    base::BytesPerSecond& rate = kind == 0   ? group.nvlink_bandwidth.value
                                 : kind == 1 ? group.nic_bandwidth.value
                                             : group.pcie_bandwidth.value;
    rate = rate * factor;
  }
  return spec;
}

void CheckMonotone(const Step& step, const profiles::Profile& profile,
                   const topology::ClusterSpec& spec, base::RandomStream& random) {
  const std::int64_t end_ps = step.EndPs(profile, spec);
  const double factor = 1 + random.UniformReal();
  for (const Change& change : kKernelChanges) {
    ASSERT_LE(step.EndPs(Better(profile, change, factor, true), spec), end_ps)
        << change.prefix << "*" << change.suffix << " times " << factor;
  }
  for (const Change& change : kNetworkChanges) {
    ASSERT_LE(step.EndPs(Better(profile, change, kSlightly, false), spec), end_ps)
        << change.prefix << "*" << change.suffix;
  }
  for (int kind = 0; kind < 3; ++kind) {
    ASSERT_LE(step.EndPs(profile, FasterLinks(spec, kind, factor)), end_ps)
        << "links " << kind << " times " << factor;
  }
}

TEST(Physics, MoreBandwidthRateOrMemoryIsNeverSlowerInAWholeStep) {
  const profiles::Profile profile = scenarios::LoadProfile("h100-sxm");
  for (std::uint64_t seed = 0; seed < kNumJobs; ++seed) {
    const plan::Job job = RandomJob(1000 + seed);
    SCOPED_TRACE(tests::Summary(job));
    base::RandomStream random(seed, "monotone");
    ASSERT_NO_FATAL_FAILURE(
        CheckMonotone(Step(job), profile, topology::H100Dgx(kMaxRanks / 8), random));
  }
}

TEST(Physics, MoreIsNeverSlowerInTheShippedExamples) {
  base::RandomStream random(17, "examples");
  for (const std::string name :
       {"quickstart", "examples/gpt-8gpu", "examples/vision-audio-12gpu",
        "examples/llava-16gpu-noncolocated", "examples/vlm-16gpu-context-parallel"}) {
    SCOPED_TRACE(name);
    const scenarios::Scenario scenario =
        scenarios::LoadScenario(std::string(ISTHMUS_SOURCE_DIR) + "/scenarios/" + name + ".yaml");
    ASSERT_NO_FATAL_FAILURE(
        CheckMonotone(Step(scenario.job), scenario.profile, scenario.cluster, random));
  }
}

}  // namespace
}  // namespace isthmus
