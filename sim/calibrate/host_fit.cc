#include "sim/calibrate/host_fit.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "sim/calibrate/fit_parts.h"

namespace isthmus::sim {
namespace {

using profiles::ProfileBuilder;
using traces::MeasuredRow;

constexpr double kVerdictMargin = 0.05;  // of a host's memory: other processes come and go

class HostFit {
 public:
  HostFit(const std::vector<MeasuredRow>& rows, const HostFacts& facts)
      : rows_(rows), facts_(facts), builder_(facts.name, facts.date) {}

  profiles::Profile Fit() && {
    builder_.Set("host.cores", Fact(facts_.cores, "1", "the operating system"));
    const auto fastest = AddKernels(rows_, "cpu", builder_);
    if (fastest.contains("fp32"))
      builder_.Set("device.peak_rate.fp32", PeakRate("fp32", fastest.at("fp32")));
    AddCommunication(rows_, facts_.cores, builder_);
    AddSpeeds();
    AddCopies();
    AddMemory();
    return std::move(builder_).Build();
  }

 private:
  void AddSpeeds() {
    const double alone = RowOf(rows_, "busy", "k1").value;
    double speed = 1;
    for (int busy = 1;; ++busy) {
      const std::string point = fmt::format("k{}", busy);
      const auto row = std::ranges::find_if(rows_, [&](const MeasuredRow& candidate) {
        return candidate.table == "busy" && candidate.point == point;
      });
      if (row == rows_.end()) return;
      speed = std::min(speed, alone / row->value);
      builder_.Set(fmt::format("host.speed.busy_{}", busy), Measured(speed, "1", *row));
    }
  }

  void AddCopies() {
    const MeasuredRow& row = RowOf(rows_, "copy");
    const double rate = 1 / row.value;
    const MeasuredRow& dispatch = RowOf(rows_, "dispatch");
    builder_.Set("copy.latency", Measured(dispatch.value, "s", dispatch));
    builder_.Set("copy.to_host.bandwidth", Measured(rate, "B/s", row));
    builder_.Set("copy.to_device.bandwidth", Measured(rate, "B/s", row));
  }

  void AddMemory() {
    builder_.Set("device.usable_memory",
                 Fact(static_cast<double>(facts_.memory_bytes), "B", "the operating system"));
    const MeasuredRow& process = RowOf(rows_, "process");
    builder_.Set("ledger.process", Measured(process.value, "B", process));
    builder_.Set("ledger.verdict_margin",
                 Assumed(kVerdictMargin, "1", "other processes of the machine"));
  }

  const std::vector<MeasuredRow>& rows_;
  const HostFacts& facts_;
  ProfileBuilder builder_;
};

}  // namespace

profiles::Profile FitHost(const std::vector<MeasuredRow>& rows, const HostFacts& facts) {
  return WithChecks(rows, HostFit(rows, facts).Fit(), facts.cores);
}

}  // namespace isthmus::sim
