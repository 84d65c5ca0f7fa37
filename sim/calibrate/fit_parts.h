#pragma once

#include <map>
#include <string>
#include <vector>

#include "profiles/profile.h"
#include "traces/measured_row.h"

/// What the fits of hosts and of GPUs have in common.
namespace isthmus::sim {

/// A parameter read off a row; its residual is the spread of the row's samples.
profiles::Parameter Measured(double value, const char* unit, const traces::MeasuredRow& row);
/// What the operating system or a driver says.
profiles::Parameter Fact(double value, const char* unit, const char* source);
profiles::Parameter Assumed(double value, const char* unit, const char* source);

/// The row of a table's point that is to be fitted. Throws base::Error if there is none, or its
/// value isn't positive.
const traces::MeasuredRow& RowOf(const std::vector<traces::MeasuredRow>& rows,
                                 const std::string& table, const std::string& point = "");

/// Sets `<prefix>.dispatch`, `host.op_issue`, and `<prefix>.<table>.<point>` for every kernel: rate
/// = work / (time - dispatch), where dispatch is at most kMaxDispatchShare of the time. Returns the
/// rate of the fastest product by data type, FLOP/s.
std::map<std::string, double> AddKernels(const std::vector<traces::MeasuredRow>& rows,
                                         const std::string& prefix,
                                         profiles::ProfileBuilder& builder);

/// Sets `gloo.*`, measured on a host of so many cores (host_fit.h).
void AddCommunication(const std::vector<traces::MeasuredRow>& rows, int cores,
                      profiles::ProfileBuilder& builder);

/// A row that was held out beside what the profile makes of it.
struct HeldOut {
  std::string table;
  std::string point;
  double measured_s = 0;
  double predicted_s = 0;
};
/// Of kernels, collectives and messages, in the order of the rows. `cores`: of the host.
std::vector<HeldOut> PredictHeldOut(const std::vector<traces::MeasuredRow>& rows,
                                    const profiles::Profile& profile, double cores);

/// The profile with `<table>.check` of every table that has rows held out: the median error of the
/// finished model on them, with their residual.
profiles::Profile WithChecks(const std::vector<traces::MeasuredRow>& rows,
                             const profiles::Profile& fitted, double cores);

/// `device.peak_rate.<dtype>` from the fastest product of it.
profiles::Parameter PeakRate(const std::string& dtype, double rate);

inline constexpr double kMaxDispatchShare = 0.8;

}  // namespace isthmus::sim
