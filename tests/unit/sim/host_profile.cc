#include "tests/unit/sim/host_profile.h"

#include <string>
#include <utility>

#include <fmt/format.h>

namespace isthmus::sim {

profiles::Profile HostProfile() {
  profiles::ProfileBuilder builder("test-host");
  const auto set = [&builder](const std::string& key, double value, const char* unit) {
    builder.Set(key, {.value = value, .unit = unit, .source = "test"});
  };
  const auto set_lines = [&set](const std::string& prefix, double factor) {
    set(prefix + ".wait.b1000", 100e-6 * factor, "s");
    set(prefix + ".wait.b5000", 300e-6 * factor, "s");
    set(prefix + ".core.b1000", 50e-6 * factor, "s");
    set(prefix + ".core.b5000", 250e-6 * factor, "s");
  };
  set("host.cores", 2, "1");
  set("host.speed.busy_1", 1, "1");
  set("host.speed.busy_2", 0.5, "1");
  set("host.op_issue", 0, "s");
  set("cpu.dispatch", 5e-6, "s");
  set("cpu.gemm.fp32.m64_n64_k64", 50e9, "FLOP/s");
  for (const char* direction : {"forward", "backward"}) {
    for (const char* mask : {"causal", "full"})
      set(fmt::format("cpu.attention.fp32.{}.{}.s64_d32", direction, mask), 20e9, "FLOP/s");
  }
  for (const char* name :
       {"elementwise", "norm", "norm_backward", "cast", "cross_entropy", "optimizer"})
    set(fmt::format("cpu.memory.{}.b4096", name), 5e9, "B/s");
  for (const char* kind :
       {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"}) {
    set_lines(fmt::format("gloo.{}.ranks_2", kind), 1);
    set_lines(fmt::format("gloo.{}.ranks_4", kind), 2);
  }
  set_lines("gloo.p2p", 1);
  set("copy.latency", 1e-6, "s");
  set("copy.to_host.bandwidth", 5e9, "B/s");
  set("copy.to_device.bandwidth", 5e9, "B/s");
  set("device.usable_memory", 8e9, "B");
  set("device.peak_rate.fp32", 100e9, "FLOP/s");
  set("ledger.process", 100e6, "B");
  set("ledger.verdict_margin", 0.05, "1");
  return std::move(builder).Build();
}

}  // namespace isthmus::sim
