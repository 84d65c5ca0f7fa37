#pragma once

#include <cstdint>
#include <string>

#include "plan/program/program.h"
#include "traces/trace.h"

namespace isthmus::backend {

/// Facts for a trace's header that no execution knows by itself.
struct RunFacts {
  std::string scenario_name;
  std::string scenario_hash;
  std::string commit;
  std::string machine;
  std::uint64_t seed = 0;
};

/// The static half of a measured trace: what the program says about ops, lanes, groups and peers,
/// one class per rank. Class r is rank r; Header::groups are the communicators of all ranks, each
/// once, numbered in the order of their first rank. Facts of devices (peak rate, nodes, memory)
/// stay empty.
traces::Header DescribeProgram(const plan::Program& program, const RunFacts& facts);

}  // namespace isthmus::backend
