#pragma once

#include <map>
#include <string>
#include <vector>

#include "profiles/profile.h"
#include "topology/locality.h"

/// Profiles and groups for tests of the cost models.
namespace isthmus::sim {

/// Round figures, so that expected times can be derived by hand: 100 SMs, 1 TFLOP/s each, memory
/// and NVLink 1 TB/s and 100 GB/s; see the source.
profiles::Profile RoundProfile();

/// `profile` with some values replaced or added (unit kept, `unit` for new ones).
profiles::Profile With(const profiles::Profile& profile,
                       const std::map<std::string, double>& values, const std::string& unit = "1");

/// scenarios/gpus/<gpu>.yaml with what it includes. Reads the one-line-per-parameter form that
/// these files have; the real loader is scenarios'.
profiles::Profile ShippedProfile(const std::string& gpu);

/// Rows of tests/data/<name> as column -> cell.
std::vector<std::map<std::string, std::string>> Facts(const std::string& name);

/// n GPUs of one node; p GPUs with a NIC each on each of `nodes` nodes (slowest links as given).
topology::GroupLocality InOneNode(int num_ranks, double nvlink = 450e9);
topology::GroupLocality AcrossNodes(int nodes, int per_node, double nvlink = 450e9,
                                    double nic = 50e9);

}  // namespace isthmus::sim
