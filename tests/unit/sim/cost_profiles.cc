#include "tests/unit/sim/cost_profiles.h"

#include <fstream>
#include <sstream>
#include <utility>

#include <gtest/gtest.h>

namespace isthmus::sim {
namespace {

const std::string kRoot = ISTHMUS_SOURCE_DIR;

/// Reads the parameters of one file; files it includes come first.
void Collect(const std::string& path, std::vector<profiles::Profile>& parts) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  profiles::ProfileBuilder builder(path, "", path);
  for (std::string line; std::getline(file, line);) {
    if (const auto at = line.find("includes: ["); at != std::string::npos) {
      std::string list = line.substr(at + 11, line.find(']') - at - 11);
      std::istringstream names(list);
      for (std::string name; std::getline(names, name, ',');) {
        Collect(kRoot + "/scenarios/" + name.substr(name.find_first_not_of(' ')), parts);
      }
    }
    const auto brace = line.find(": {value: ");
    if (brace == std::string::npos) continue;
    const auto cell = [&](const std::string& field) {
      const auto from = line.find(field) + field.size();
      return line.substr(from, line.find(',', from) - from);
    };
    std::string unit = cell("unit: ");
    if (unit == "\"1\"") unit = "1";
    builder.Set(line.substr(2, brace - 2), {.value = std::stod(cell("{value: ")),
                                            .unit = unit,
                                            .mark = profiles::Mark::kMeasured,
                                            .source = "test",
                                            .residual = {},
                                            .strict = {},
                                            .origin = path});
  }
  parts.push_back(std::move(builder).Build());
}

topology::GroupLocality Group(int nodes, int per_node, double nvlink, double nic) {
  topology::GroupLocality group;
  group.num_ranks = nodes * per_node;
  group.num_devices = group.num_ranks;
  group.num_nodes = nodes;
  group.min_ranks_per_node = per_node;
  group.max_ranks_per_node = per_node;
  group.num_leaf_groups = 1;
  group.num_rails = per_node;
  group.min_nics_per_node = per_node;
  group.farthest = nodes > 1 ? topology::PathKind::kRail : topology::PathKind::kNvlink;
  group.slowest_nvlink = base::BytesPerSecond(nvlink);
  group.slowest_nic = base::BytesPerSecond(nic);
  return group;
}

}  // namespace

profiles::Profile With(const profiles::Profile& profile,
                       const std::map<std::string, double>& values, const std::string& unit) {
  profiles::ProfileBuilder changes("changes");
  for (const auto& [key, value] : values) {
    changes.Set(key, {.value = value,
                      .unit = profile.has(key) ? profile.Get(key).unit : unit,
                      .mark = profiles::Mark::kAssumed,
                      .source = "test",
                      .residual = {},
                      .strict = {},
                      .origin = {}});
  }
  return profiles::MergeProfiles(profile.name(), {profile, std::move(changes).Build()});
}

profiles::Profile RoundProfile() {
  profiles::ProfileBuilder builder("round", "", "round.yaml");
  const auto set = [&](const std::string& key, double value, const std::string& unit) {
    builder.Set(key, {.value = value,
                      .unit = unit,
                      .mark = profiles::Mark::kAssumed,
                      .source = "test",
                      .residual = {},
                      .strict = {},
                      .origin = {}});
  };
  set("device.num_sms", 100, "1");
  set("device.peak_rate.bf16", 1000e12, "FLOP/s");
  set("device.memory_bandwidth", 1e12, "B/s");
  set("device.nvlink_bandwidth", 100e9, "B/s");
  set("device.nic_bandwidth", 10e9, "B/s");
  set("clock.bf16.ratio", 1, "1");
  set("gemm.tile.128x256", 1, "1");
  set("gemm.tile.128x128", 1, "1");
  set("gemm.split_k.tile", 128, "1");
  set("gemm.split_k.max_parts", 8, "1");
  set("gemm.split_k.latency", 2e-6, "s");
  set("gemm.split_k.bytes_per_output", 8, "B");
  set("gemm.bf16.peak_rate", 100e12, "FLOP/s");
  set("gemm.bf16.latency", 1e-6, "s");
  set("gemm.bf16.exposed_epilogue", 0.5, "1");
  set("gemm.bf16.memory_bandwidth", 1e12, "B/s");
  set("gemm.bf16.wave_quantization", 0.5, "1");
  set("gemm.bf16.half_tile_efficiency", 0.9, "1");
  set("attention.latency", 5e-6, "s");
  set("attention.cudnn.throttled", 1, "1");
  set("attention.flash2.throttled", 0, "1");
  for (const std::string name : {"cudnn", "flash2"}) {
    for (const std::string mask : {"causal", "full"}) {
      set("attention." + name + ".forward." + mask + ".rate", 500e12, "FLOP/s");
      set("attention." + name + ".forward." + mask + ".half_span", mask == "causal" ? 1000 : 250,
          "1");
      set("attention." + name + ".backward." + mask + ".rate", 400e12, "FLOP/s");
      set("attention." + name + ".backward." + mask + ".half_span", 1000, "1");
    }
    set("attention." + name + ".head_dim.64", 0.75, "1");
    set("attention." + name + ".head_dim.128", 1, "1");
  }
  set("attention.unfused.throttled", 1, "1");
  set("attention.unfused.gemm_share", 0.5, "1");
  set("attention.unfused.bytes_per_score", 13, "B");
  set("attention.unfused.launches", 4, "1");
  set("attention.unfused.backward_factor", 2, "1");
  set("memory.latency", 3e-6, "s");
  for (const std::string name : {"elementwise", "norm", "norm_backward", "cast", "cross_entropy",
                                 "optimizer", "head_norm", "head_norm_backward"}) {
    set("memory." + name + ".efficiency", name == "norm" ? 0.8 : 0.5, "1");
  }
  set("step.optimizer_latency", 1e-3, "s");
  set("host.launch_gap", 1e-6, "s");
  set("host.layer_issue.forward", 40e-12, "s");
  set("host.layer_issue.backward", 20e-12, "s");
  set("host.op_issue", 1e-12, "s");
  set("overlap.gather_in.contention_sms", 4, "1");
  set("overlap.gather_in.min_chunk_rows", 256, "1");
  set("overlap.scatter_out.reserved_sms", 20, "1");
  set("overlap.scatter_out.chunks", 4, "1");
  set("overlap.scatter_out.chunk_latency", 3e-6, "s");
  set("overlap.bulk.contention_sms", 16, "1");
  set("overlap.gradient_sync.contention_sms", 16, "1");
  set("attention.ring.variable_length.efficiency", 0.8, "1");
  for (const std::string kind : {"all_gather", "reduce_scatter", "all_to_all", "all_reduce"}) {
    for (const int n : {2, 4, 8}) {
      const std::string form = "collective.node." + kind + "." + std::to_string(n);
      set(form + ".latency", n * 1e-6, "s");
      set(form + ".bandwidth", 50e9, "B/s");
      set(form + ".ramp", 4e-6, "s");
      set(form + ".ramp_exponent", 0.5, "1");
      set(form + ".in_switch", kind == "all_reduce" && n == 8 ? 1 : 0, "1");
    }
  }
  set("collective.nvls.enabled", 1, "1");
  set("collective.nodes.all_reduce.latency_per_doubling", 10e-6, "s");
  set("collective.nodes.all_reduce.bandwidth_2_nodes", 100e9, "B/s");
  set("collective.nodes.all_reduce.bandwidth", 80e9, "B/s");
  set("collective.nodes.all_reduce.ramp", 10e-6, "s");
  set("collective.nodes.all_reduce.ramp_growth", 1, "1");
  set("collective.nodes.all_reduce.ramp_exponent", 0.5, "1");
  set("collective.nodes.gather.latency", 20e-6, "s");
  set("collective.nodes.gather.hop_latency", 4e-6, "s");
  set("collective.nodes.gather.nic_efficiency", 0.9, "1");
  set("collective.nodes.gather.nvlink_efficiency", 0.5, "1");
  set("collective.nodes.all_to_all.latency", 25e-6, "s");
  set("p2p.inter_node.latency", 15e-6, "s");
  set("p2p.inter_node.nic_efficiency", 0.9, "1");
  set("p2p.intra_node.latency", 12e-6, "s");
  set("p2p.intra_node.nvlink_efficiency", 0.5, "1");
  set("copy.latency", 10e-6, "s");
  set("copy.to_device.bandwidth", 50e9, "B/s");
  set("copy.to_host.bandwidth", 40e9, "B/s");
  return std::move(builder).Build();
}

profiles::Profile ShippedProfile(const std::string& gpu) {
  std::vector<profiles::Profile> parts;
  Collect(kRoot + "/scenarios/gpus/" + gpu + ".yaml", parts);
  return profiles::MergeProfiles(gpu, parts);
}

std::vector<std::map<std::string, std::string>> Facts(const std::string& name) {
  std::ifstream file(kRoot + "/tests/data/" + name);
  EXPECT_TRUE(file.good()) << name;
  const auto split = [](const std::string& line) {
    std::vector<std::string> cells;
    std::istringstream text(line);
    for (std::string cell; std::getline(text, cell, ',');) cells.push_back(cell);
    return cells;
  };
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> header = split(line);
  std::vector<std::map<std::string, std::string>> rows;
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = split(line);
    std::map<std::string, std::string> row;
    for (std::size_t i = 0; i < cells.size() && i < header.size(); ++i) row[header[i]] = cells[i];
    rows.push_back(std::move(row));
  }
  return rows;
}

topology::GroupLocality InOneNode(int num_ranks, double nvlink) {
  return Group(1, num_ranks, nvlink, 50e9);
}

topology::GroupLocality AcrossNodes(int nodes, int per_node, double nvlink, double nic) {
  return Group(nodes, per_node, nvlink, nic);
}

}  // namespace isthmus::sim
